//! The nodes that were selected in the list: those with a tick, or all that its filters choose.

use super::MOST;
use crate::address::query::ListQuery;
use crate::form::Form;
use crate::orders::kinds::{OrderKind, What, is_worked_on};
use crate::refusal::Refusal;
use farrier_conductor::model::Node;
use farrier_engine::Conductor;
use farrier_engine::store::{Filter, NodeColumn, Selection};
use std::collections::BTreeSet;
use uuid::Uuid;

/// Reads the nodes that a form of the list has selected, by name.
pub(super) async fn selected(conductor: &Conductor, form: &Form) -> Result<Vec<Node>, Refusal> {
    let filters = match form.text("all") {
        "" => {
            let ticked = form.fields().filter(|(name, _)| *name == "node");
            let ticked: Option<BTreeSet<Uuid>> = ticked.map(|(_, uuid)| uuid.parse().ok()).collect();
            let ticked =
                ticked.ok_or_else(|| Refusal::bad_request("The address names a node by no UUID."))?;
            vec![of(&ticked)]
        }
        _ => ListQuery::read(form.text("list"))?.filters(),
    };
    read(conductor, filters).await
}

/// Reads these nodes, of those that there are.
pub(super) async fn nodes(conductor: &Conductor, uuids: &BTreeSet<Uuid>) -> Result<Vec<Node>, Refusal> {
    read(conductor, vec![of(uuids)]).await
}

fn of(uuids: &BTreeSet<Uuid>) -> Filter {
    Filter::IsOneOf(NodeColumn::UUID, uuids.iter().map(Uuid::to_string).collect())
}

async fn read(conductor: &Conductor, filters: Vec<Filter>) -> Result<Vec<Node>, Refusal> {
    let selection = Selection { filters, ..Selection::first(MOST as u32 + 1) };
    let mut nodes: Vec<_> =
        conductor.store().records(&selection).await?.into_iter().map(|record| record.node).collect();
    if nodes.len() > MOST {
        let text =
            format!("An order is for at most {MOST} nodes at once. Choose fewer by the filters of the list.");
        return Err(Refusal::bad_request(text));
    }
    nodes.sort_by_key(Node::label);
    Ok(nodes)
}

/// Why an order is not for a node; nothing where it is.
pub(super) fn obstacle(kind: &OrderKind, node: &Node) -> Option<String> {
    if let Some(conductor) = &node.reservation {
        return Some(format!("Conductor {conductor} works on the node."));
    }
    if let Some(forbidden) = kind.forbidden(node) {
        return Some(forbidden);
    }
    if kind.is_offered(node) {
        return None;
    }
    Some(match (kind.what, node.power_state) {
        (What::Maintenance(true), _) => "The node is in maintenance already.".to_owned(),
        (What::Maintenance(false), _) => "The node is in no maintenance.".to_owned(),
        (What::Power(_), Some(power)) if !is_worked_on(node) => format!("The machine is in {power} already."),
        _ => format!("The node is {}, a state without this order.", node.provision_state),
    })
}
