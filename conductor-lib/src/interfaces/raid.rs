//! RAID volumes (section 1.12).

use super::base::{Interface, InterfaceError, Properties};
use super::deploy::Outcome;
use crate::error::Error;
use crate::model::InterfaceKind::Raid;
use crate::model::Node;
use crate::task::Task;
use async_trait::async_trait;
use serde_json::{Map, Value};

/// Makes and deletes RAID volumes.
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

    /// Makes the volumes of `target_raid_config`: the root volume, the others, or both.
    ///
    /// # Errors
    ///
    /// What fails the step.
    async fn create_configuration(
        &self,
        _task: &mut Task,
        _root: bool,
        _others: bool,
    ) -> Result<Outcome, Error> {
        Ok(InterfaceError::unsupported(Raid, "create_configuration")?)
    }

    /// Deletes every volume.
    ///
    /// # Errors
    ///
    /// What fails the step.
    async fn delete_configuration(&self, _task: &mut Task) -> Result<Outcome, Error> {
        Ok(InterfaceError::unsupported(Raid, "delete_configuration")?)
    }
}
