//! What a boot of the ramdisk falls back to: further boot interfaces, in the order in which the node's operator has named
//! them.
//!
//! Each operation begins with the node's own. The next one takes its place where it cannot prepare the machine, as a BMC
//! without virtual media, and where it could, and no agent calls. It stays for the boots of the operation, until the
//! ramdisk is cleaned up, as it is after a failure, too.

use super::Task;
use crate::error::Error;
use crate::model::{BootFallback, Node};

/// The name of the boot interface that comes after the one that the ramdisk is booted by now.
fn next(node: &Node) -> Result<Option<&str>, Error> {
    let names = node.driver_info.boot_fallback()?;
    let tried = match &node.driver_internal_info.boot_fallback {
        Some(now) => {
            names.iter().position(|name| *name == now.boot_interface).map_or(names.len(), |at| at + 1)
        }
        None => 0,
    };
    Ok(names.get(tried).copied())
}

/// Whether there is a boot interface left that a boot of a node's ramdisk can fall back to.
pub fn can_fall_back(node: &Node) -> bool {
    next(node).is_ok_and(|next| next.is_some())
}

impl Task {
    /// Has the next boot interface take the place of the one that the ramdisk is booted by now, which counts at once,
    /// and returns whether there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for an unusable list, [`Error::Host`].
    pub async fn fall_back(&mut self, reason: &str) -> Result<bool, Error> {
        let Some(next) = next(&self.node)?.map(str::to_owned) else { return Ok(false) };
        let node = self.node.label();
        tracing::warn!(%node, boot_interface = next, "the boot of the ramdisk falls back to another interface: {reason}");
        // What failed may be unable to clean up as well, and is no reason to stay.
        if let Err(error) = self.clean_up_ramdisk().await {
            tracing::warn!(%node, "the preparation of the previous boot interface remains: {error}");
        }
        let fallback = BootFallback { boot_interface: next, reason: reason.to_owned() };
        self.node.driver_internal_info.boot_fallback = Some(fallback);
        self.save().await?;
        Ok(true)
    }
}
