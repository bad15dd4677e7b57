//! The constraints by which records of a store are unique, and how databases name them.

/// A constraint that a write may violate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Constraint {
    /// The UUID of a record.
    Uuid,
    /// The name of a node.
    NodeName,
    /// The instance of a node.
    NodeInstance,
    /// The name of a port.
    PortName,
    /// The MAC address of a port.
    PortAddress,
    /// The name of an allocation.
    AllocationName,
    /// The name of a resource among those of its kind.
    ResourceName,
    /// What a resource is known by among those of its kind, such as its address.
    ResourceKey,
}

/// Each constraint with its columns, by which SQLite names it.
const COLUMNS: &[(Constraint, &str)] = &[
    (Constraint::Uuid, "nodes.uuid"),
    (Constraint::NodeName, "nodes.name"),
    (Constraint::NodeInstance, "nodes.instance_uuid"),
    (Constraint::Uuid, "ports.uuid"),
    (Constraint::PortName, "ports.name"),
    (Constraint::PortAddress, "ports.address"),
    (Constraint::Uuid, "allocations.uuid"),
    (Constraint::AllocationName, "allocations.name"),
    (Constraint::Uuid, "resources.uuid"),
    (Constraint::ResourceName, "resources.kind, resources.name"),
    (Constraint::ResourceKey, "resources.kind, resources.natural_key"),
];

/// What SQLite says before the columns of a constraint that was violated.
const VIOLATED: &str = "UNIQUE constraint failed: ";

impl Constraint {
    /// The constraint that a statement violated, as SQLite reports it: SQLite names no constraint, but its columns.
    pub(super) fn violated(error: &sqlx::Error) -> Option<Self> {
        let error = error.as_database_error().filter(|error| error.is_unique_violation())?;
        let columns = error.message().split_once(VIOLATED)?.1;
        COLUMNS.iter().find(|(_, known)| *known == columns).map(|(constraint, _)| *constraint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::SqliteStore;
    use std::collections::BTreeSet;

    /// A constraint that is missing here would be a failure of the store, where a client has to choose another name.
    #[tokio::test]
    async fn every_unique_column_of_the_tables_that_clients_write_is_a_constraint() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap();
        let mut found = BTreeSet::new();
        for table in ["nodes", "ports", "allocations", "resources"] {
            for columns in store.unique_columns(table).await.unwrap() {
                let columns: Vec<_> = columns.iter().map(|column| format!("{table}.{column}")).collect();
                found.insert(columns.join(", "));
            }
        }
        let known: BTreeSet<_> = COLUMNS.iter().map(|(_, columns)| (*columns).to_owned()).collect();
        assert_eq!(found, known);
    }
}
