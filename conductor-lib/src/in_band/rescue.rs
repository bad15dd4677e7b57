//! Rescue (section 2.7).

use crate::error::Error;
use crate::interfaces::base::{Interface, InterfaceError};
use crate::interfaces::outcome::Outcome;
use crate::model::InterfaceKind::Rescue;
use crate::task::Task;
use async_trait::async_trait;

/// Boots a system to repair an instance with, and its instance again.
///
/// Each call may be made again after a conductor stopped in the middle of it.
#[async_trait]
pub trait RescueInterface: Interface {
    /// Checks whether the machine can be rescued, without touching it.
    ///
    /// # Errors
    ///
    /// What refuses the order.
    async fn validate_rescue(&self, _task: &Task) -> Result<(), Error> {
        Ok(())
    }

    /// Begins a rescue, or does all of it where no agent is awaited. The hash of its password is in `instance_info`.
    ///
    /// # Errors
    ///
    /// What fails the rescue.
    async fn rescue(&self, _task: &mut Task) -> Result<Outcome, Error> {
        Ok(InterfaceError::unsupported(Rescue, "rescue")?)
    }

    /// Gives the rescue system, whose agent has called, its password. When it returns, the system has it.
    ///
    /// # Errors
    ///
    /// [`AgentError::Busy`](crate::agent::AgentError::Busy) when it must be asked later,
    /// [`AgentError::Unreachable`](crate::agent::AgentError::Unreachable) when it may have it or not:
    /// then the rescue begins again. Anything else fails the rescue.
    async fn finalize_rescue(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(InterfaceError::unsupported(Rescue, "finalize_rescue")?)
    }

    /// Boots the instance again.
    ///
    /// # Errors
    ///
    /// What fails it.
    async fn unrescue(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(InterfaceError::unsupported(Rescue, "unrescue")?)
    }

    /// Undoes what was prepared for a rescue: the password, what the machine boots, its network. A rescue system that
    /// runs continues. Nothing happens where nothing was prepared.
    ///
    /// # Errors
    ///
    /// What could not be undone.
    async fn clean_up(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(InterfaceError::unsupported(Rescue, "clean_up")?)
    }
}
