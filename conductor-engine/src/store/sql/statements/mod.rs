//! Every statement of a store, in SQL that SQLite and PostgreSQL read alike, but for what a [`Dialect`] has.
//!
//! Parameters that are columns of a record come in the order of [`columns`](crate::store::columns), after the identity. A statement
//! reads by an index; only a list reads as many rows as it has, and a test looks at the plan of each statement.

/// Declares statements, and lists them by their names for the tests that look at each of them.
macro_rules! statements {
    ($($(#[$about:meta])* $name:ident = $text:expr;)*) => {
        $($(#[$about])* pub(in crate::store) const $name: &str = $text;)*

        /// The statements of this file, by their names.
        #[cfg(test)]
        pub(super) const STATEMENTS: &[(&str, &str)] = &[$((stringify!($name), $name)),*];
    };
}

/// Nodes with their sessions, one row for each port, for the end of a statement that says which nodes.
macro_rules! select_records {
    ($which:literal) => {
        concat!(
            "SELECT nodes.uuid, nodes.name, nodes.driver, nodes.conductor_group, nodes.resource_class, nodes.owner, ",
            "nodes.lessee, nodes.shard, nodes.parent_node, nodes.instance_uuid, nodes.instance_name, ",
            "nodes.allocation_uuid, nodes.provision_state, nodes.target_provision_state, ",
            "nodes.provision_updated_at, nodes.power_state, nodes.target_power_state, nodes.maintenance, ",
            "nodes.fault, nodes.created_at, nodes.updated_at, nodes.chassis_uuid, nodes.console_enabled, nodes.retired, ",
            "nodes.protected, nodes.reservation, nodes.lease_epoch, nodes.lease_expires_at, ",
            "node_documents.document AS node_document, ",
            "agent_sessions.agent_secret_token, agent_sessions.agent_url, agent_sessions.agent_version, ",
            "agent_sessions.agent_last_heartbeat, agent_sessions.agent_verify_ca, agent_sessions.agent_status, ",
            "agent_sessions.agent_status_message, agent_sessions.document AS session_document, ",
            "orders.verb, orders.ordered_at, orders.attempts, ports.uuid AS port_uuid, ports.address AS port_address, ",
            "ports.name AS port_name, ports.created_at AS port_created_at, ports.updated_at AS port_updated_at, ",
            "ports.document AS port_document ",
            "FROM nodes JOIN node_documents ON node_documents.node = nodes.uuid ",
            "JOIN agent_sessions ON agent_sessions.node = nodes.uuid ",
            "LEFT JOIN orders ON orders.node = nodes.uuid ",
            "LEFT JOIN ports ON ports.node = nodes.uuid ",
            $which
        )
    };
}

/// Ports, for the end of a statement that says which. The columns have the same names as those of a record.
macro_rules! select_ports {
    ($which:literal) => {
        concat!(
            "SELECT ports.node, ports.uuid AS port_uuid, ports.address AS port_address, ports.name AS port_name, ",
            "ports.created_at AS port_created_at, ports.updated_at AS port_updated_at, ",
            "ports.document AS port_document FROM ports ",
            $which
        )
    };
}

mod catalogue;
mod conductors;
mod dialect;
mod evidence;
#[cfg(test)]
mod examples;
mod leases;
mod nodes;
mod selected;

pub(super) use catalogue::*;
pub(super) use conductors::*;
pub use dialect::Dialect;
pub(super) use evidence::*;
pub(super) use leases::*;
pub(super) use nodes::*;
pub use selected::*;

#[cfg(test)]
pub(in crate::store) use examples::{Reads, every};

/// Every statement with a fixed text, by its name.
#[cfg(test)]
pub(in crate::store) fn fixed() -> impl Iterator<Item = (&'static str, &'static str)> {
    let files = [
        catalogue::STATEMENTS,
        conductors::STATEMENTS,
        evidence::STATEMENTS,
        leases::STATEMENTS,
        nodes::STATEMENTS,
    ];
    files.into_iter().flatten().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::columns::SESSION;
    use crate::store::selection::NODE;
    use crate::store::sql::migration::LAYOUTS;
    use farrier_conductor::model::{Activity, ProvisionState};

    #[test]
    fn nodes_that_are_worked_on_or_wait_need_attention() {
        for state in ProvisionState::ALL {
            let needs = matches!(state.activity(), Activity::Work | Activity::Wait);
            assert_eq!(UNATTENDED.contains(&format!("'{state}'")), needs, "{state}");
            let waits = state.activity() == Activity::Wait;
            assert_eq!(AWAITED_BOOTS.contains(&format!("'{state}'")), waits, "{state}");
        }
    }

    /// The index of these nodes is found by the text of its condition.
    #[test]
    fn nodes_that_need_an_operator_are_those_of_explain_and_of_their_index() {
        for state in ProvisionState::ALL {
            let needs = state.needs_operator(false);
            assert_eq!(NEEDS_OPERATOR.contains(&format!("'{state}'")), needs, "{state}");
            assert!(state.needs_operator(true), "{state}");
        }
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace("nodes.", "");
        let index = words(include_str!("../migrations/0002_lists.sql"));
        assert!(index.ends_with(&format!("WHERE {};", words(NEEDS_OPERATOR))), "{index}");
    }

    #[test]
    fn statements_name_the_columns_in_their_order() {
        let assigned = |columns: &[(&str, _)], first: usize| {
            let pairs = columns.iter().enumerate();
            pairs.map(|(at, (name, _))| format!("{name} = ${}", at + first)).collect::<Vec<_>>().join(", ")
        };
        let named =
            |columns: &[(&str, _)]| columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        assert!(UPDATE_NODE.contains(&assigned(NODE, 2)), "{UPDATE_NODE}");
        assert!(INSERT_NODE.contains(&named(NODE)), "{INSERT_NODE}");
        assert!(REPLACE_SESSION.contains(&assigned(SESSION, 2)), "{REPLACE_SESSION}");
        assert!(INSERT_SESSION.contains(&named(SESSION)), "{INSERT_SESSION}");
        // The token is what a heartbeat is known by.
        assert!(HEAR.contains(&assigned(&SESSION[1..], 3)), "{HEAR}");
        for (name, _) in NODE {
            assert!(RECORD.contains(&format!("nodes.{name}, ")), "{name}");
        }
        for (name, _) in SESSION {
            assert!(RECORD.contains(&format!("agent_sessions.{name}, ")), "{name}");
        }
    }

    #[test]
    fn only_words_that_both_databases_know_are_used() {
        let mut statements: Vec<_> = fixed().map(|(_, text)| text.to_owned()).collect();
        statements.extend(every(Dialect::Sqlite).into_iter().map(|example| example.text));
        statements.extend(LAYOUTS.iter().map(|layout| layout.statements.to_owned()));
        // A statement that needs one of these needs two texts; `?` is no parameter of PostgreSQL.
        for word in [
            "?",
            "json",
            "datetime",
            "strftime",
            "ifnull",
            "rowid",
            "autoincrement",
            "pragma",
            " or replace",
            " or ignore",
            "blob",
            "glob ",
            "::",
            "now()",
            "serial",
            "jsonb",
            "ilike",
            "for update",
            "collate",
        ] {
            for statement in &statements {
                let plain: String = statement.lines().filter(|line| !line.starts_with("--")).collect();
                assert!(!plain.to_ascii_lowercase().contains(word), "{word:?} in {statement}");
            }
        }
    }

    /// Statements that are declared otherwise are in no list of them.
    #[test]
    fn every_statement_is_declared_as_one() {
        let sources = [
            include_str!("catalogue.rs"),
            include_str!("conductors.rs"),
            include_str!("evidence.rs"),
            include_str!("leases.rs"),
            include_str!("nodes.rs"),
        ];
        let declared: usize = sources.iter().map(|source| source.matches(" = \"").count()).sum();
        let composed: usize = sources.iter().map(|source| source.matches(" = select_").count()).sum();
        assert!(sources.iter().all(|source| !source.contains("const ") && !source.contains("fn ")));
        assert_eq!(declared + composed, fixed().count());
    }
}
