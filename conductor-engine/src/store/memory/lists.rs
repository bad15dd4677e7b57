//! Which nodes a list has, in which order.

use super::Tables;
use crate::store::columns::{Column, SESSION, column, split, value};
use crate::store::selection::{Kind, NODE};
use crate::store::{Documents, Filter, NodeColumn, Outline, Record, Selection};
use farrier_conductor::model::Node;
use serde_json::{Value, json};
use uuid::Uuid;

/// The selected nodes, in their order.
pub(super) fn selected<'a>(
    tables: &'a Tables,
    selection: &Selection,
) -> impl Iterator<Item = &'a Record> + use<'a> {
    let meets = |record: &&Record| selection.filters.iter().all(|filter| is_met(filter, &record.node));
    let mut found: Vec<_> = tables.nodes.values().map(|kept| &kept.record).filter(meets).collect();
    found.sort_by_key(|record| place(selection.sort, &record.node));
    if selection.descending {
        found.reverse();
    }
    if let Some(after) = &selection.after {
        let after = (ranked(column(selection.sort.kind, Some(after.value.clone()))), after.uuid);
        found.retain(|record| match selection.descending {
            true => place(selection.sort, &record.node) < after,
            false => place(selection.sort, &record.node) > after,
        });
    }
    found.truncate(selection.limit as usize);
    found.into_iter()
}

/// Where a node is in an order. What is not there sorts as what is empty.
fn place(sort: NodeColumn, node: &Node) -> (Column, Uuid) {
    (ranked(column_of(sort, node)), node.uuid)
}

fn ranked(column: Column) -> Column {
    match column {
        Column::Text(text) => Column::Text(Some(text.unwrap_or_default())),
        Column::Number(time) => Column::Number(Some(time.unwrap_or_default())),
        Column::Flag(flag) => Column::Flag(flag),
    }
}

fn column_of(of: NodeColumn, node: &Node) -> Column {
    if of == NodeColumn::UUID {
        return Column::Text(Some(node.uuid.to_string()));
    }
    let found = NODE.iter().position(|(name, _)| *name == of.name);
    found.map_or(Column::Text(None), |at| split(node, NODE).0.swap_remove(at))
}

fn is_met(filter: &Filter, node: &Node) -> bool {
    let text = |of: NodeColumn| match column_of(of, node) {
        Column::Text(text) => text,
        Column::Number(_) | Column::Flag(_) => None,
    };
    let noted = |field: &str| json!(node).get(field).cloned().unwrap_or_default();
    match filter {
        Filter::IsOneOf(of, texts) => text(*of).is_some_and(|text| texts.contains(&text)),
        Filter::Flag(of, flag) => column_of(*of, node) == Column::Flag(*flag),
        Filter::IsSet(of, is_set) => {
            !matches!(column_of(*of, node), Column::Text(None) | Column::Number(None)) == *is_set
        }
        Filter::AnyIs(columns, wanted) => columns.iter().any(|of| text(*of).as_ref() == Some(wanted)),
        Filter::IsOrHasNone(of, wanted) => text(*of).is_none_or(|text| text == *wanted),
        Filter::HasTrait(name) => node.traits.contains(name),
        Filter::NeedsOperator(needs) => node.provision_state.needs_operator(node.maintenance) == *needs,
        Filter::BeginsWith { name, uuid, address } => {
            let instance = node.instance_uuid.get().map(|instance| instance.to_string());
            node.name.as_ref().is_some_and(|own| own.starts_with(name))
                || node.uuid.to_string().starts_with(uuid)
                || instance.is_some_and(|instance| instance.starts_with(uuid))
                || node.ports.iter().any(|port| port.address.to_string().starts_with(address))
        }
        Filter::Contains(field, part) => {
            let part = part.to_ascii_lowercase();
            noted(field).as_str().is_some_and(|text| text.to_ascii_lowercase().contains(&part))
        }
    }
}

/// What the columns that are asked for say of a node.
pub(super) fn outline(record: &Record, selection: &Selection) -> Outline {
    let node = &record.node;
    let mut fields = named(NODE, split(node, NODE).0);
    fields.retain(|(name, _)| selection.columns.iter().any(|column| column.name == *name));
    fields.extend([("uuid", json!(node.uuid)), ("reservation", json!(node.reservation))]);
    Outline { uuid: node.uuid, fields, lease_expires_at: record.lease_expires_at }
}

/// What is kept of a node and its agent beside columns of the node.
pub(super) fn documents(record: &Record) -> Documents {
    let (columns, session) = split(&record.session, SESSION);
    Documents { node: split(&record.node, NODE).1, session, session_columns: named(SESSION, columns) }
}

fn named(names: &[(&'static str, Kind)], columns: Vec<Column>) -> Vec<(&'static str, Value)> {
    names.iter().zip(columns).map(|((name, _), column)| (*name, value(column))).collect()
}
