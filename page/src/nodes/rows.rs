//! Reads a page of the list: at most two statements for its rows.

use crate::address::cursor::Cursor;
use crate::address::part::Version;
use crate::address::query::{ListQuery, column};
use farrier_conductor::model::ProvisionState;
use farrier_engine::Conductor;
use farrier_engine::store::{Filter, NodeColumn, Outline, Position, Selection, StoreError};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

/// Rows of a page.
const ROWS: u32 = 100;

/// What rows show, and what the orders of a node hang on.
const COLUMNS: [&str; 11] = [
    "name",
    "driver",
    "conductor_group",
    "provision_state",
    "provision_updated_at",
    "power_state",
    "target_power_state",
    "maintenance",
    "fault",
    "instance_name",
    "created_at",
];

/// A page of the list.
pub(crate) struct Page {
    pub(crate) rows: Vec<Row>,
    /// Where the next one begins, if there is one.
    pub(crate) next: Option<Cursor>,
}

/// A node in the list.
pub(crate) struct Row(Outline);

impl Row {
    pub(crate) fn node(&self) -> Uuid {
        self.0.uuid
    }

    /// The version of what it shows.
    pub(crate) fn version(&self) -> Version {
        Version::of(self.shown())
    }

    /// The version of what the pages of the node show. A conductor that works on the node takes no orders.
    pub(crate) fn version_of_node(&self) -> Version {
        Version::of((self.shown(), self.0.field("reservation").map(Value::to_string)))
    }

    fn shown(&self) -> [Option<String>; 11] {
        COLUMNS.map(|column| self.0.field(column).map(Value::to_string))
    }

    /// What people call it.
    pub(crate) fn label(&self) -> String {
        self.text("name").map_or_else(|| self.node().to_string(), str::to_owned)
    }

    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        Some(self.0.text(field)).filter(|text| !text.is_empty())
    }

    pub(crate) fn state(&self) -> Option<ProvisionState> {
        ProvisionState::named(self.0.text("provision_state"))
    }

    pub(crate) fn since(&self) -> Option<OffsetDateTime> {
        OffsetDateTime::parse(self.0.text("provision_updated_at"), &Rfc3339).ok()
    }

    pub(crate) fn is_in_maintenance(&self) -> bool {
        self.0.field("maintenance") == Some(&Value::Bool(true))
    }

    pub(crate) fn needs_operator(&self) -> bool {
        self.state().is_some_and(|state| state.needs_operator(self.is_in_maintenance()))
    }
}

/// The rows of some nodes, of those that there are.
pub(crate) async fn of(conductor: &Conductor, nodes: &[Uuid]) -> Result<Vec<Row>, StoreError> {
    let uuids = nodes.iter().map(Uuid::to_string).collect();
    let filters = vec![Filter::IsOneOf(NodeColumn::UUID, uuids)];
    select(conductor, Selection { filters, ..Selection::first(nodes.len() as u32) }).await
}

/// The rows of a selection, with the columns that rows show.
pub(crate) async fn select(conductor: &Conductor, selection: Selection) -> Result<Vec<Row>, StoreError> {
    let selection = Selection { columns: COLUMNS.map(column).to_vec(), ..selection };
    Ok(conductor.store().outlines(&selection).await?.into_iter().map(Row).collect())
}

/// Reads the page that is asked for.
pub(crate) async fn read(conductor: &Conductor, query: &ListQuery) -> Result<Page, StoreError> {
    let order = query.order();
    let sort = column(order.column);
    let mut selection = Selection {
        filters: query.filters(),
        sort,
        descending: order.is_descending,
        after: query.after.as_ref().map(|after| after.position.clone()),
        limit: ROWS + 1,
        columns: COLUMNS.map(column).to_vec(),
    };
    let has_groups = order.operators_first && !query.asks_for_operators();
    let mut found = Vec::new();
    if !has_groups {
        found = conductor.store().outlines(&selection).await?;
    } else {
        let begins_with_operators = query.after.as_ref().is_none_or(|after| after.needs_operator);
        let groups: &[bool] = if begins_with_operators { &[true, false] } else { &[false] };
        for needs_operator in groups {
            selection.filters.push(Filter::NeedsOperator(*needs_operator));
            found.extend(conductor.store().outlines(&selection).await?);
            selection.filters.pop();
            // The second group begins with its first node, where the first one ends on this page.
            selection.after = None;
            selection.limit = (ROWS + 1).saturating_sub(found.len() as u32);
            if selection.limit == 0 {
                break;
            }
        }
    }
    let has_next = found.len() > ROWS as usize;
    found.truncate(ROWS as usize);
    let rows: Vec<_> = found.into_iter().map(Row).collect();
    let next = rows.last().filter(|_| has_next).map(|row| Cursor {
        needs_operator: row.needs_operator(),
        position: Position {
            value: row.0.field(order.column).cloned().unwrap_or_default(),
            uuid: row.0.uuid,
        },
    });
    Ok(Page { rows, next })
}
