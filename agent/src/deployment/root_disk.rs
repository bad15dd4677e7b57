//! Choosing the root disk and waiting for it (sections 8.1 and 9.4).

use crate::agent::Agent;
use crate::commands::errors::from_disk;
use crate::device_settle::{self, facts::Awaited};
use farrier_disk::guard::{self, RootDisk};
use farrier_disk::list;
use farrier_hardware::dispatch::HardwareManagers;
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::lookup::Node;
use std::path::Path;
use std::thread;

/// Looks for the root disk until it is there: disks appear late, and another one would be wrong
/// (F25).
///
/// # Errors
///
/// The last verdict when the budget is spent.
pub fn wait(agent: &Agent) -> Result<RootDisk, CommandError> {
    let node = agent.node()?;
    let awaited = agent.wait_for_devices();
    if node.root_device().is_none() {
        require_all(&awaited)?;
    }
    look_for(agent, &node)
}

/// Waits for the disk that the hints of the node mean, once for the same hints (section 9.4). Without it the
/// agent continues: a step may be about to create it.
pub fn expect_hinted(agent: &Agent) {
    let Ok(node) = agent.node() else { return };
    let Some(hints) = node.root_device() else { return };
    if agent.expects_anew(hints)
        && let Err(error) = look_for(agent, &node)
    {
        tracing::warn!("continuing without the root disk: {}", error.text());
    }
}

/// What lies on the other disks and may be taken for what belongs to the system on this one; a sentence for each is in the
/// log, too. None keeps a system from being deployed.
pub fn leftovers(disk: &RootDisk) -> Vec<String> {
    let found = disk.leftovers().unwrap_or_else(|error| {
        tracing::warn!("the contents of the other disks are unknown: {error}");
        Vec::new()
    });
    found.iter().for_each(|warning| tracing::warn!("{warning}"));
    found
}

fn look_for(agent: &Agent, node: &Node) -> Result<RootDisk, CommandError> {
    let attempts = agent.options.disk_wait_attempts.max(1);
    let mut attempt = 1;
    loop {
        match choose(agent.managers(), node) {
            Ok(disk) => return Ok(disk),
            Err(error) if attempt >= attempts || error.kind != ErrorKind::DeviceNotFound.name() => {
                return Err(error);
            }
            Err(error) => {
                tracing::warn!(attempt, attempts, "waiting for the root disk: {}", error.text());
                thread::sleep(agent.options.disk_wait_delay.duration());
                attempt += 1;
            }
        }
    }
}

/// The disk that would be chosen without hints.
///
/// # Errors
///
/// No disk fits, or one that is still coming up might fit better.
pub fn choose_default(agent: &Agent) -> Result<RootDisk, CommandError> {
    let managers = agent.managers();
    require_all(&agent.devices.missed())?;
    choose(managers, &Node::default())
}

/// Without hints any disk that is still to come may be the root disk.
fn require_all(awaited: &[Awaited]) -> Result<(), CommandError> {
    if awaited.is_empty() {
        return Ok(());
    }
    let details = format!(
        "without root device hints it is not known which disk is meant while some are missing: {}; look at that \
         controller, raise farrier-device-wait-timeout, or give hints",
        device_settle::text(awaited)
    );
    Err(CommandError::new(ErrorKind::DeviceNotFound, details))
}

/// The disk that would be the root disk of a node at this moment. It is none that a manager hides.
///
/// # Errors
///
/// No disk fits.
pub fn choose(managers: &HardwareManagers, node: &Node) -> Result<RootDisk, CommandError> {
    let devices = list::list(Path::new("/sys")).map_err(from_disk)?;
    let mut node = node.clone();
    managers.shield(&mut node.properties, &devices);
    guard::choose_root_disk(&node, &devices).map_err(from_disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x02_no_root_disk_is_taken_by_default_while_disks_are_missing() {
        assert!(require_all(&[]).is_ok());
        let error = require_all(&[Awaited::Driver("mpt3sas".to_owned(), Vec::new())]).unwrap_err();
        assert_eq!(error.kind, "DeviceNotFound");
        for part in ["mpt3sas", "farrier-device-wait-timeout", "hints"] {
            assert!(error.details.contains(part), "{}", error.details);
        }
    }
}
