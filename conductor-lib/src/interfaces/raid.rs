//! RAID volumes (section 1.12).

use super::base::{Interface, InterfaceError, Properties};
use crate::model::InterfaceKind::Raid;
use crate::model::Node;
use async_trait::async_trait;
use serde_json::{Map, Value};

/// Makes and deletes RAID volumes, by steps: its own ([`Interface::steps`]), or those of the agent.
#[async_trait]
pub trait RaidInterface: Interface {
    /// The keys of a volume that operators may set, with what they mean.
    fn get_logical_disk_properties(&self) -> Properties {
        &[]
    }

    /// Checks the volumes that an operator wants.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::Invalid`] for what cannot be made.
    async fn validate_raid_config(
        &self,
        _node: &Node,
        _target: &Map<String, Value>,
    ) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Raid, "validate_raid_config")
    }

    /// Whether the agent's steps of the interface `raid` are steps of its nodes.
    fn runs_steps_of_agent(&self) -> bool {
        false
    }
}
