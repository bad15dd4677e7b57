//! Rescue (section 2.7).

use super::base::{Interface, InterfaceError};
use super::deploy::Outcome;
use crate::error::Error;
use crate::model::InterfaceKind::Rescue;
use crate::task::Task;
use async_trait::async_trait;

/// Boots a system to repair an instance with, and its instance again.
#[async_trait]
pub trait RescueInterface: Interface {
    /// Begins a rescue, or does it where nobody is waited for.
    ///
    /// # Errors
    ///
    /// What fails the rescue.
    async fn rescue(&self, _task: &mut Task) -> Result<Outcome, Error> {
        Ok(InterfaceError::unsupported(Rescue, "rescue")?)
    }

    /// Boots the instance again.
    ///
    /// # Errors
    ///
    /// What fails it.
    async fn unrescue(&self, _task: &mut Task) -> Result<Outcome, Error> {
        Ok(InterfaceError::unsupported(Rescue, "unrescue")?)
    }

    /// Undoes what was prepared for a rescue: the password, what the machine boots, its network.
    ///
    /// # Errors
    ///
    /// What could not be undone.
    async fn clean_up(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(InterfaceError::unsupported(Rescue, "clean_up")?)
    }
}
