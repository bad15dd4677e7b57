//! Inspection: what a machine is made of.

use super::base::{Interface, InterfaceError};
use super::deploy::Outcome;
use crate::error::Error;
use crate::model::InterfaceKind::Inspect;
use crate::task::Task;
use async_trait::async_trait;
use serde_json::{Map, Value};

/// Finds out what a machine is made of.
#[async_trait]
pub trait InspectInterface: Interface {
    /// Begins an inspection, or does it where nobody is waited for.
    ///
    /// # Errors
    ///
    /// What fails the inspection.
    async fn inspect_hardware(&self, _task: &mut Task) -> Result<Outcome, Error> {
        Ok(InterfaceError::unsupported(Inspect, "inspect_hardware")?)
    }

    /// Takes what the ramdisk found out.
    ///
    /// # Errors
    ///
    /// What fails the inspection.
    async fn continue_inspection(
        &self,
        _task: &mut Task,
        _inventory: &Map<String, Value>,
        _plugin_data: &Map<String, Value>,
    ) -> Result<(), Error> {
        Ok(InterfaceError::unsupported(Inspect, "continue_inspection")?)
    }

    /// Ends an inspection that waits, and undoes what was done for it.
    ///
    /// # Errors
    ///
    /// What could not be undone.
    async fn abort(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(InterfaceError::unsupported(Inspect, "abort")?)
    }
}
