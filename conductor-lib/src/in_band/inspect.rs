//! Inspection: what a machine is made of.

use crate::error::Error;
use crate::interfaces::base::{Interface, InterfaceError};
use crate::interfaces::outcome::Outcome;
use crate::model::InspectionData;
use crate::model::InterfaceKind::Inspect;
use crate::task::Task;
use async_trait::async_trait;

/// Finds out what a machine is made of.
///
/// Each call may be made again after a conductor stopped in the middle of it. An inspection that fails, or is aborted,
/// is put right by the conductor: the machine is powered off, what it boots is cleaned up, and it leaves the network.
#[async_trait]
pub trait InspectInterface: Interface {
    /// Checks whether the machine can be inspected, without touching it.
    ///
    /// # Errors
    ///
    /// What refuses the order.
    async fn validate_inspection(&self, _task: &Task) -> Result<(), Error> {
        Ok(())
    }

    /// Begins an inspection, or does all of it where no agent is awaited.
    ///
    /// # Errors
    ///
    /// What fails the inspection.
    async fn inspect_hardware(&self, _task: &mut Task) -> Result<Outcome, Error> {
        Ok(InterfaceError::unsupported(Inspect, "inspect_hardware")?)
    }

    /// Takes what the ramdisk found out. What it changes of the node, and keeps with [`Task::note_inspection`], is
    /// written with the end of the inspection.
    ///
    /// # Errors
    ///
    /// What fails the inspection.
    async fn continue_inspection(&self, _task: &mut Task, _data: InspectionData) -> Result<(), Error> {
        Ok(InterfaceError::unsupported(Inspect, "continue_inspection")?)
    }
}
