//! How a machine gets ready for its instance, and how it loses it (section 1.13). Deploy interfaces without an agent may do
//! alike.

use crate::error::Error;
use crate::model::Family;
use crate::task::ramdisk;
use crate::task::{NetworkChange, Task};

/// Has a machine that is adopted start its instance from now on. A deployment prepares that when its image is written,
/// and an unrescue as its rescue interface does.
///
/// # Errors
///
/// [`Error::Unresolved`], [`Error::Interface`], [`Error::Host`].
pub async fn prepare(task: &mut Task) -> Result<(), Error> {
    match task.node.provision_state.family() {
        Some(Family::Adopt) => task.prepare_instance().await,
        _ => Ok(()),
    }
}

/// Powers a machine off, and takes it off its volumes and networks.
///
/// # Errors
///
/// As [`prepare`].
pub async fn tear_down(task: &mut Task) -> Result<(), Error> {
    task.power_off().await?;
    task.detach_volumes().await?;
    let mut changes = vec![NetworkChange::UnconfigureTenant];
    changes.extend(ramdisk::leaving(task));
    task.change_networks(&changes).await
}

/// Undoes what boots a machine: the ramdisk, and where the instance is removed, the instance. After a deployment that
/// has failed the instance stays prepared: its deployment may resume where it failed.
///
/// # Errors
///
/// As [`prepare`].
pub async fn clean_up(task: &mut Task) -> Result<(), Error> {
    task.clean_up_ramdisk().await?;
    match task.node.provision_state.family() {
        Some(Family::Delete) => task.clean_up_instance().await,
        _ => Ok(()),
    }
}
