//! Allocations: what users want of any node, and the node that they got (Ironic's API from version 1.52 on).

use farrier_conductor::model::node::Node;
use farrier_conductor::model::states::{ProvisionState, named_states};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use time::OffsetDateTime;
use uuid::Uuid;

named_states! {
    /// How far an allocation is.
    AllocationState {
        /// A node is looked for.
        Allocating = "allocating",
        /// It has its node.
        Active = "active",
        /// There is no node for it.
        Error = "error",
    }
}

/// What a user wants of any node, and the node that there is for it. The identity of the allocation is that of the
/// node's instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    /// Identity.
    pub uuid: Uuid,
    /// Unique name, where it has one. A node of this name is taken first.
    #[serde(default)]
    pub name: Option<String>,
    /// How far it is.
    pub state: AllocationState,
    /// The node that it has.
    #[serde(default)]
    pub node_uuid: Option<Uuid>,
    /// Why it has none.
    #[serde(default)]
    pub last_error: Option<String>,
    /// The class that the node must have.
    #[serde(default)]
    pub resource_class: Option<String>,
    /// The traits that the node must have.
    #[serde(default)]
    pub traits: Vec<String>,
    /// The nodes that come into question; any where there are none.
    #[serde(default)]
    pub candidate_nodes: Vec<Uuid>,
    /// The project that owns it. The node must be its own, or without an owner.
    #[serde(default)]
    pub owner: Option<String>,
    /// What operators keep.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// When it was asked for.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When it last changed.
    #[serde(default, with = "time::serde::rfc3339::option")]
    pub updated_at: Option<OffsetDateTime>,
}

impl Allocation {
    /// Whether a node is free, and as wanted.
    pub fn suits(&self, node: &Node) -> bool {
        let is_free = node.provision_state == ProvisionState::Available
            && node.instance_uuid.get().is_none()
            && !(node.maintenance || node.retired || node.protected);
        let is_candidate = self.candidate_nodes.is_empty() || self.candidate_nodes.contains(&node.uuid);
        let is_theirs = self.owner.is_none() || node.owner.is_none() || self.owner == node.owner;
        is_free
            && is_candidate
            && is_theirs
            && self.resource_class == node.resource_class
            && self.traits.iter().all(|name| node.traits.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests::node;

    #[test]
    fn a_node_suits_that_is_free_and_as_wanted() {
        type Change = fn(&mut Allocation, &mut Node);
        let cases: [(Change, bool); 11] = [
            (|_, _| {}, true),
            (|_, node| node.provision_state = ProvisionState::Active, false),
            (|_, node| node.instance_uuid.set(Uuid::new_v4()).unwrap(), false),
            (|_, node| node.maintenance = true, false),
            (|_, node| node.retired = true, false),
            (|_, node| node.resource_class = Some("gold".into()), false),
            (|allocation, _| allocation.traits.push("CUSTOM_A".into()), false),
            (
                |allocation, node| {
                    allocation.traits.push("CUSTOM_A".into());
                    node.traits = vec!["CUSTOM_A".into(), "CUSTOM_B".into()];
                },
                true,
            ),
            (|allocation, _| allocation.candidate_nodes.push(Uuid::new_v4()), false),
            (|allocation, node| allocation.candidate_nodes.push(node.uuid), true),
            (|allocation, node| (allocation.owner, node.owner) = (Some("a".into()), Some("b".into())), false),
        ];
        for (number, (change, suits)) in cases.into_iter().enumerate() {
            let mut node = node();
            node.resource_class = Some("iron".into());
            let mut allocation = Allocation {
                uuid: Uuid::new_v4(),
                name: None,
                state: AllocationState::Allocating,
                node_uuid: None,
                last_error: None,
                resource_class: Some("iron".into()),
                traits: Vec::new(),
                candidate_nodes: Vec::new(),
                owner: None,
                extra: Map::new(),
                created_at: OffsetDateTime::UNIX_EPOCH,
                updated_at: None,
            };
            change(&mut allocation, &mut node);
            assert_eq!(allocation.suits(&node), suits, "{number}");
        }
    }
}
