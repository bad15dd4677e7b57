//! What operators forbid by the flags of a node (sections 5.2 and 12.6).

use farrier_conductor::model::Event;
use farrier_conductor::model::Node;

/// A flag of the node forbids what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// An operator works on the machine, or it has a fault.
    #[error("node {node} is in maintenance{reason}; end that first")]
    Maintenance {
        /// Name of the node.
        node: String,
        /// Why, as the end of the sentence.
        reason: String,
    },
    /// The instance is not to be lost.
    #[error("node {node} is protected{reason}; end that first")]
    Protected {
        /// Name of the node.
        node: String,
        /// Why, as the end of the sentence.
        reason: String,
    },
    /// Its disk is exported, by hand.
    #[error("the disk of node {node} is exported as {export}; run `farrier disk release {node}` first")]
    Exported {
        /// Name of the node.
        node: String,
        /// Target and portal.
        export: String,
    },
    /// The machine gets no further instance.
    #[error("node {node} is retired{reason}; end that first")]
    Retired {
        /// Name of the node.
        node: String,
        /// Why, as the end of the sentence.
        reason: String,
    },
}

impl Forbidden {
    /// Refuses an event that an operator wants and a flag of the node forbids. While its disk is exported none may happen.
    ///
    /// # Errors
    ///
    /// The flag that forbids it, with its reason.
    pub fn check(node: &Node, event: Event) -> Result<(), Self> {
        use Event::{Clean, Delete, Deploy, Provide, Rebuild, Rescue, Retry, Service, Unrescue};
        let label = || node.label();
        let because =
            |reason: &Option<String>| reason.as_ref().map(|text| format!(" ({text})")).unwrap_or_default();
        if let Some(export) = &node.driver_internal_info.disk_export {
            return Err(Forbidden::Exported { node: label(), export: export.to_string() });
        }
        match event {
            Rebuild | Delete if node.protected => {
                Err(Forbidden::Protected { node: label(), reason: because(&node.protected_reason) })
            }
            Deploy | Rebuild | Rescue | Unrescue | Clean | Service | Retry if node.maintenance => {
                Err(Forbidden::Maintenance { node: label(), reason: because(&node.maintenance_reason) })
            }
            Provide | Deploy if node.retired => {
                Err(Forbidden::Retired { node: label(), reason: because(&node.retired_reason) })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests::node;
    use farrier_conductor::model::typed_maps::noted_export::NotedExport;
    use time::OffsetDateTime;

    /// The events that a node with a flag refuses.
    fn refused(set: impl Fn(&mut Node)) -> Vec<&'static str> {
        let mut node = node();
        set(&mut node);
        Event::ALL
            .iter()
            .filter(|event| Forbidden::check(&node, **event).is_err())
            .map(|event| event.as_str())
            .collect()
    }

    #[test]
    fn each_flag_forbids_what_the_contract_says() {
        assert!(refused(|_| {}).is_empty());
        assert_eq!(
            refused(|node| node.maintenance = true),
            ["clean", "deploy", "rebuild", "rescue", "unrescue", "service", "retry"]
        );
        assert_eq!(refused(|node| node.protected = true), ["rebuild", "delete"]);
        assert_eq!(refused(|node| node.retired = true), ["provide", "deploy"]);
        let export = NotedExport {
            target: "iqn.2026-01.org.example:x".into(),
            portal: "192.0.2.17:3260".into(),
            since: OffsetDateTime::UNIX_EPOCH,
        };
        let exported = |node: &mut Node| node.driver_internal_info.disk_export = Some(export.clone());
        assert_eq!(refused(exported).len(), Event::ALL.len());
    }

    #[test]
    fn a_refusal_tells_the_operators_reason() {
        let mut node = node();
        (node.protected, node.protected_reason) = (true, Some("holds the only copy".into()));
        let refused = Forbidden::check(&node, Event::Delete).unwrap_err().to_string();
        assert_eq!(refused, "node n1 is protected (holds the only copy); end that first");
    }
}
