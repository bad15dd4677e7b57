//! The constraints by which records of a store are unique, and how databases name them.

use crate::store::StoreError;
use crate::store::sql::Failure;
use uuid::Uuid;

/// A constraint that a write may violate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constraint {
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

/// Each constraint with its columns, by which SQLite names it, and with the name that PostgreSQL gives it.
const NAMES: &[(Constraint, &str, &str)] = &[
    (Constraint::Uuid, "nodes.uuid", "nodes_pkey"),
    (Constraint::NodeName, "nodes.name", "nodes_name_key"),
    (Constraint::NodeInstance, "nodes.instance_uuid", "nodes_instance_uuid_key"),
    (Constraint::Uuid, "ports.uuid", "ports_pkey"),
    (Constraint::PortName, "ports.name", "ports_name_key"),
    (Constraint::PortAddress, "ports.address", "ports_address_key"),
    (Constraint::Uuid, "allocations.uuid", "allocations_pkey"),
    (Constraint::AllocationName, "allocations.name", "allocations_name_key"),
    (Constraint::Uuid, "resources.uuid", "resources_pkey"),
    (Constraint::ResourceName, "resources.kind, resources.name", "resources_kind_name_key"),
    (Constraint::ResourceKey, "resources.kind, resources.natural_key", "resources_kind_natural_key_key"),
];

/// What SQLite says before the columns of a constraint that was violated.
const VIOLATED: &str = "UNIQUE constraint failed: ";

impl Constraint {
    /// The constraint that a statement violated. PostgreSQL tells its name; SQLite tells its columns in words.
    fn violated(error: &sqlx::Error) -> Option<Self> {
        let error = error.as_database_error().filter(|error| error.is_unique_violation())?;
        let told = match error.constraint() {
            Some(name) => name,
            None => error.message().split_once(VIOLATED)?.1,
        };
        let found = NAMES.iter().find(|(_, columns, name)| [*columns, *name].contains(&told));
        found.map(|(constraint, ..)| *constraint)
    }
}

/// What a record has that another one has already: its UUID, or what `what` says of the constraint that was violated. Other
/// failures stay as they are.
pub fn taken_or(failure: Failure, uuid: Uuid, what: impl FnOnce(Constraint) -> String) -> Failure {
    let Failure::Database(error) = &failure else { return failure };
    let what = match Constraint::violated(error) {
        None => return failure,
        Some(Constraint::Uuid) => format!("a record with UUID {uuid}"),
        Some(constraint) => what(constraint),
    };
    StoreError::Taken { what }.into()
}

/// The names that PostgreSQL gives the constraints.
#[cfg(feature = "postgres")]
#[cfg(test)]
pub fn postgres_names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(_, _, name)| *name)
}

#[cfg(feature = "sqlite")]
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
        let known: BTreeSet<_> = NAMES.iter().map(|(_, columns, _)| (*columns).to_owned()).collect();
        assert_eq!(found, known);
    }
}
