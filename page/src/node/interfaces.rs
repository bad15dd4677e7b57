//! The interfaces of a node, and what each of them misses.

use super::parts::NodePage;
use crate::html;
use crate::refusal::Refusal;
use crate::session::Visitor;
use axum::extract::{Extension, Path, State};
use farrier_conductor::hardware_type::Validity;
use farrier_conductor::model::InterfaceKind;
use farrier_engine::Conductor;
use maud::{Markup, html};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;

/// Longest wait for interfaces that ask another service.
const PATIENCE: Duration = Duration::from_secs(10);

const HEAD: [&str; 4] = ["Interface", "Implementation", "Valid", "Missing"];

/// `GET /page/nodes/{node}/interfaces`
pub(crate) async fn show(
    State(conductor): State<Conductor>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Markup, Refusal> {
    let page = NodePage::open(&conductor, &id).await?;
    let node = &page.node;
    let machines = conductor.machines();
    let uuid = node.uuid.to_string();
    let validated = match timeout(PATIENCE, machines.validate(&uuid)).await {
        Ok(validated) => Some(validated?),
        Err(_) => None,
    };
    let content = html! {
        @if validated.is_none() {
            p.failure { "The interfaces did not answer within " (PATIENCE.as_secs()) " s." }
        }
        table {
            caption { "Interfaces" }
            (html::head(&HEAD))
            tbody { @for kind in InterfaceKind::ALL {
                tr {
                    th scope="row" { (kind.to_string()) }
                    td data-label=(HEAD[1]) { (html::text_or_none(node.interfaces.get(*kind))) }
                    (verdict(validated.as_ref(), *kind))
                }
            } }
        }
    };
    Ok(page.show(&visitor, "/interfaces", &content))
}

fn verdict(validated: Option<&BTreeMap<InterfaceKind, Validity>>, kind: InterfaceKind) -> Markup {
    let validity = validated.and_then(|validated| validated.get(&kind));
    let (verdict, reason) = match validity {
        Some(Validity { result: Some(true), .. }) => ("yes", None),
        Some(Validity { result: Some(false), reason }) => ("no", reason.as_deref()),
        Some(Validity { result: None, reason }) => ("not supported", reason.as_deref()),
        None => ("not known", None),
    };
    html! {
        td data-label=(HEAD[2]) { (verdict) }
        td data-label=(HEAD[3]) { (html::text_or_none(reason)) }
    }
}
