//! The RAID interface `agent`: steps of the agent make and delete volumes.

use crate::interfaces::base::{Interface, InterfaceError, Properties};
use crate::interfaces::raid::RaidInterface;
use crate::model::Node;
use crate::steps::raid::config::{self, LOGICAL_DISK_PROPERTIES};
use async_trait::async_trait;
use serde_json::{Map, Value};

/// Has the agent make volumes: of the system's own RAID, or by a hardware manager that knows the controller.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentRaid;

impl Interface for AgentRaid {}

#[async_trait]
impl RaidInterface for AgentRaid {
    fn get_logical_disk_properties(&self) -> Properties {
        LOGICAL_DISK_PROPERTIES
    }

    /// What the disks of the machine must have for it, the agent sees before it touches one.
    async fn validate_raid_config(
        &self,
        _node: &Node,
        target: &Map<String, Value>,
    ) -> Result<(), InterfaceError> {
        config::check(target)
            .map_err(|faults| InterfaceError::invalid("target_raid_config", faults.join("; ")))
    }

    fn runs_steps_of_agent(&self) -> bool {
        true
    }
}
