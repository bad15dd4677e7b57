//! What an order would do to many nodes, and why it is not for some of them.

use super::selection::{obstacle, selected};
use super::{MANY, kind, nodes};
use crate::form::Form;
use crate::orders::effect::Effect;
use crate::orders::form::field;
use crate::orders::kinds::OrderKind;
use crate::orders::seen::Seen;
use crate::refusal::Refusal;
use crate::session::Visitor;
use crate::{frame, html};
use axum::extract::{Extension, RawQuery, State};
use farrier_conductor::model::Node;
use farrier_engine::Conductor;
use maud::{Markup, html};

const HEAD: [&str; 3] = ["Node", "State", "Reason"];

/// `GET /page/many`
pub(crate) async fn preview(
    State(conductor): State<Conductor>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
) -> Result<Markup, Refusal> {
    let form = Form::of(query.unwrap_or_default().as_bytes());
    let kind = kind(form.text("order")).await?;
    let selected = selected(&conductor, &form).await?;
    let mut effects: Vec<(Effect, Vec<&Node>)> = Vec::new();
    let mut others = Vec::new();
    for node in &selected {
        if let Some(reason) = obstacle(kind, node) {
            others.push((node, reason));
            continue;
        }
        let effect = kind.effect(node, conductor.settings());
        match effects.iter_mut().find(|(known, _)| *known == effect) {
            Some((_, alike)) => alike.push(node),
            None => effects.push((effect, vec![node])),
        }
    }
    let count = effects.iter().map(|(_, nodes)| nodes.len()).sum::<usize>();
    let content = html! {
        p { "Selected: " (nodes(selected.len())) ". The order is for " b { (nodes(count)) } ", and not for " b { (nodes(others.len())) } "." }
        @for (effect, nodes) in &effects { (affected(effect, nodes)) }
        @if count > 0 { (order(&visitor, kind, &effects, count)) }
        @if !others.is_empty() { (left_out(&others)) }
        p { a href="/page/" { "To the list of nodes" } }
    };
    Ok(frame::page(&format!("{} {}", kind.label, nodes(count)), Some(&visitor), &content))
}

fn affected(effect: &Effect, affected: &[&Node]) -> Markup {
    html! {
        section.order {
            p {
                b { (nodes(affected.len())) } ": " (html::text(&effect.text))
                @if effect.is_destructive { " " strong.mark { "Data may be lost." } }
            }
            details open[affected.len() <= 20] {
                summary { "Names" }
                ul.names { @for node in affected {
                    li { a href=(format!("/page/nodes/{}", node.uuid)) { (html::text(&node.label())) } }
                } }
            }
        }
    }
}

fn order(visitor: &Visitor, kind: &OrderKind, effects: &[(Effect, Vec<&Node>)], count: usize) -> Markup {
    let is_destructive = effects.iter().any(|(effect, _)| effect.is_destructive);
    html! {
        form.many method="post" action=(MANY) {
            (frame::token(visitor))
            input type="hidden" name="order" value=(kind.name);
            @for node in effects.iter().flat_map(|(_, nodes)| nodes) {
                input type="hidden" name="node" value=(format!("{}.{}", node.uuid, Seen::of(node).text()));
            }
            @for input in kind.inputs { (field(kind, input)) }
            @if is_destructive {
                div {
                    label for="confirm" { "Type the number of nodes, " b { (count) } ", to confirm" }
                    input #confirm name="confirm" autocomplete="off" inputmode="numeric" required maxlength="9";
                }
            }
            button.destructive[is_destructive] { (kind.label) " " (nodes(count)) }
        }
    }
}

/// A table of nodes that do not have the order, with the reasons.
pub(super) fn left_out(others: &[(&Node, String)]) -> Markup {
    html! {
        table {
            caption { "Nodes without this order" }
            (html::head(&HEAD))
            tbody { @for (node, reason) in others {
                tr {
                    th scope="row" { a href=(format!("/page/nodes/{}", node.uuid)) { (html::text(&node.label())) } }
                    td data-label=(HEAD[1]) { (html::state(node.provision_state)) }
                    td data-label=(HEAD[2]) { (html::text(reason)) }
                }
            } }
        }
    }
}
