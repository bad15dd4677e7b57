//! Choosing the root disk and waiting for it (sections 8.1 and 9.4).

use crate::agent::Agent;
use crate::errors::from_disk;
use crate::settle;
use farrier_disk::guard::{self, RootDisk};
use farrier_disk::{WritableDisk, list};
use farrier_hardware::dispatch::HardwareManagers;
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::lookup::Node;
use std::path::Path;
use std::thread;

/// The root disk of the cached node, opened for writing and for nobody else.
///
/// # Errors
///
/// No disk fits, or the one that does is in use.
pub fn open(agent: &Agent) -> Result<WritableDisk, CommandError> {
    wait(agent)?.open().map_err(from_disk)
}

/// Looks for the root disk until it is there: disks appear late, and another one would be wrong
/// (F25).
///
/// # Errors
///
/// The last verdict when the budget is spent.
pub fn wait(agent: &Agent) -> Result<RootDisk, CommandError> {
    let node = agent.node()?;
    agent.runtime.block_on(settle::wait(&agent.root));
    let attempts = agent.options.disk_wait_attempts.max(1);
    let mut attempt = 1;
    loop {
        match choose(&agent.managers, &node) {
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
