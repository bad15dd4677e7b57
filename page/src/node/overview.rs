//! What a node does, what it waits for, what went wrong last, and the orders that it can have.

use super::parts::NodePage;
use crate::address::part::{ORDERS, TOLD};
use crate::form::Form;
use crate::orders::{OrderKind, form::orders};
use crate::refusal::Refusal;
use crate::session::Visitor;
use crate::{frame, html};
use axum::extract::{Extension, Path, RawQuery, State};
use farrier_access::sees_consoles;
use farrier_conductor::model::{InterfaceKind, Node, PlannedStep, StepKind};
use farrier_engine::Conductor;
use farrier_engine::explain::Explanation;
use maud::{Markup, html};
use serde_json::Value;
use time::OffsetDateTime;

/// `GET /page/nodes/{node}`
pub(crate) async fn show(
    State(conductor): State<Conductor>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Markup, Refusal> {
    let page = NodePage::open(&conductor, &id).await?;
    let (node, now) = (&page.node, page.now);
    let explanation = conductor.evidence().explain_record(&node.uuid.to_string()).await?;
    let explanation = match sees_consoles(Some(&visitor.identity)) {
        true => explanation,
        false => explanation.without_console(),
    };
    let query = Form::of(query.unwrap_or_default().as_bytes());
    let ordered = OrderKind::named(query.text("ordered"));
    let content = html! {
        @if let Some(ordered) = ordered {
            (frame::notice(&format!("The order {:?} was accepted. This page shows the node as it is now.", ordered.label)))
        }
        div #(TOLD) data-version=(page.version) {
            (explained(&explanation, now))
            @if let Some(error) = &node.last_error {
                section aria-labelledby="error" { h2 #error { "Last error" } p.failure { (html::text(error)) } }
            }
        }
        div #(ORDERS) data-version=(page.row) { (orders(&visitor, node, conductor.settings())) }
        section aria-labelledby="record" { h2 #record { "Record" } (record(&conductor, node, now)) }
    };
    Ok(page.show(&visitor, "", &content))
}

/// What a node waits for and what to do, with its evidence.
pub(super) fn explained(explanation: &Explanation, now: OffsetDateTime) -> Markup {
    html! {
        section aria-labelledby="explanation" {
            h2 #explanation { "What it waits for" }
            p { (html::text(&explanation.waits_for)) }
            @if let Some(until) = explanation.until {
                p { "Until " (html::when(until, now)) @if explanation.is_overdue { strong.mark { " Overdue" } } }
            }
            @if let Some(cause) = &explanation.cause {
                p.failure { "Cause: " (html::text(&cause.to_string())) }
            }
            h3 { "What to do" }
            p { (html::text(&explanation.next_action)) }
            @for command in &explanation.commands { pre { code { (html::text(command)) } } }
            @if !explanation.evidence.is_empty() {
                details open {
                    summary { "Evidence" }
                    dl.facts {
                        @for evidence in &explanation.evidence {
                            div { dt { (html::text(&evidence.what)) } dd { (html::text(&evidence.said)) } }
                        }
                    }
                }
            }
        }
    }
}

fn record(conductor: &Conductor, node: &Node, now: OffsetDateTime) -> Markup {
    let text = html::text_or_none;
    let uuid = node.uuid.to_string();
    let power = match (node.power_state, node.target_power_state) {
        (Some(state), Some(target)) => format!("{state}, on the way to {target}"),
        (state, _) => state.map_or("not known", |state| state.as_str()).to_owned(),
    };
    let target = node.target_provision_state.map(|target| target.as_str());
    html::facts(&[
        ("UUID", html::text(&uuid)),
        ("Description", text(node.description.as_deref())),
        ("Target state", text(target)),
        ("Step", text(step(node).as_deref())),
        ("Power", html::text(&power)),
        ("Maintenance", maintenance(node)),
        ("Fault", text(node.fault.map(|fault| fault.as_str()))),
        ("Driver", html::text(&node.driver)),
        ("Deploy interface", text(node.interfaces.get(InterfaceKind::Deploy))),
        ("Conductor", text(conductor.leader(node).as_deref())),
        ("Conductor group", text(Some(&node.conductor_group))),
        ("Resource class", text(node.resource_class.as_deref())),
        ("Traits", text(Some(&node.traits.join(", ")))),
        ("Owner", text(node.owner.as_deref())),
        ("Lessee", text(node.lessee.as_deref())),
        ("Instance", text(node.instance_name.as_deref())),
        ("Instance UUID", text(node.instance_uuid.get().map(|uuid| uuid.to_string()).as_deref())),
        ("Image", html::value(node.instance_info.get("image_source"))),
        ("Protected", flag(node.protected, node.protected_reason.as_deref())),
        ("Retired", flag(node.retired, node.retired_reason.as_deref())),
        ("Health", text(node.health.as_deref())),
        ("Enrolled", html::when(node.created_at, now)),
        ("Changed", html::when(node.updated_at, now)),
        ("driver_info", document(node.driver_info.iter())),
        ("properties", document(node.properties.iter())),
        ("extra", document(node.extra.iter())),
    ])
}

fn step(node: &Node) -> Option<String> {
    let kind = StepKind::of(node.provision_state)?;
    let step = node.step(kind).map(PlannedStep::id)?;
    let place =
        node.plan(kind).index.map(|index| format!(" ({} of {})", index + 1, node.plan(kind).steps.len()));
    Some(format!("{kind} step {step}{}", place.unwrap_or_default()))
}

fn maintenance(node: &Node) -> Markup {
    flag(node.maintenance, node.maintenance_reason.as_deref())
}

fn flag(is_set: bool, reason: Option<&str>) -> Markup {
    html! {
        @if is_set { "yes" } @else { "no" }
        @if let Some(reason) = reason { ": " (html::text(reason)) }
    }
}

/// Keys and values, whose secrets are masked already.
fn document<'a>(fields: impl Iterator<Item = (&'a String, &'a Value)>) -> Markup {
    let mut fields = fields.peekable();
    html! {
        @if fields.peek().is_none() { (html::text_or_none(None)) }
        @else { ul { @for (name, value) in fields { li { (html::text(name)) ": " (html::value(Some(value))) } } } }
    }
}
