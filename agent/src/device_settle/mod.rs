//! Waiting for devices to settle, as `udevadm settle` does elsewhere: the one barrier before whatever lists disks,
//! cards or hardware managers (F25).
//!
//! The agent is ready long before its machine is. A disk that shows up after the disks were listed would be
//! missing in an inventory, would not be erased, and could not be chosen; a card that does would make a manager
//! misjudge the machine. So steps, inventory, managers and the choice of the root disk stand behind
//! [`DeviceWait::wait`], which ends by [`facts`]: drivers loaded, first scans ended. Disks with several paths,
//! arrays of software RAID and iSCSI disks of the firmware are then put together ([`assembly`]). The first
//! heartbeat does not wait.
//!
//! The wait has a deadline. The console and the doctor report the devices that are still missing then, which fails
//! what would otherwise be wrong in silence: erasing all disks, and the choice of a root disk without hints. Devices that
//! come and go at the deadline are among that: a machine that was never quiet was never seen to be complete.

mod assembly;
mod fabric;
pub mod facts;
mod watch;

use crate::status::Status;
use facts::Awaited;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use watch::{Look, Watch};

/// How often to look.
const POLL: Duration = Duration::from_millis(250);
/// How often to tell what is awaited, when that changes all the time.
const REMINDER: Duration = Duration::from_secs(10);
/// Longest wait of a command whose answer the conductor waits for: it gives up after a minute.
pub const BRIEFLY: Duration = Duration::from_secs(40);

/// The devices of this machine, and whether they were waited for.
pub struct DeviceWait {
    root: PathBuf,
    /// Held during a wait: the others then find it done.
    state: Mutex<State>,
}

/// How the last wait ended.
#[derive(Default)]
struct State {
    is_over: bool,
    awaited: Vec<Awaited>,
}

impl DeviceWait {
    /// No wait has run yet, in the machine whose files lie below `root`.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), state: Mutex::default() }
    }

    /// Waits until the devices of the machine are there, so long at most, and puts its disks together. Returns
    /// what is still awaited then. What was waited for once is there; what was not is waited for again.
    pub fn wait(&self, patience: Duration, status: &Status) -> Vec<Awaited> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            return Vec::new();
        }
        let sysfs = self.root.join("sys");
        let deadline = Instant::now() + patience;
        state.awaited = wait_below(&self.root, deadline, status);
        if sysfs.exists() {
            if assembly::log_in(&sysfs) {
                state.awaited = wait_below(&self.root, deadline, status);
            }
            assembly::put_together(&sysfs);
        }
        state.is_over = state.awaited.is_empty();
        if !state.is_over {
            tracing::warn!(
                "continuing without devices after {} s: {}",
                patience.as_secs(),
                text(&state.awaited)
            );
        }
        state.awaited.clone()
    }

    /// What was still awaited when the last wait ended.
    pub fn missed(&self) -> Vec<Awaited> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).awaited.clone()
    }
}

/// What is awaited, in one line.
pub fn text(awaited: &[Awaited]) -> String {
    awaited.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn wait_below(root: &Path, deadline: Instant, status: &Status) -> Vec<Awaited> {
    let mut watch = Watch::begin(root, Instant::now());
    let mut reminder = Instant::now();
    let mut told = String::new();
    let awaited = loop {
        let now = Instant::now();
        let look = watch.look(now);
        if let Look::Awaiting(awaited) = &look {
            let text = text(awaited);
            status.wait_for(Some(format!("waiting for devices: {text}")));
            if now >= reminder && text != told {
                tracing::info!("waiting for devices: {text}");
                (reminder, told) = (now + REMINDER, text);
            }
        }
        match look {
            Look::Over => break Vec::new(),
            Look::Awaiting(awaited) if now >= deadline => break awaited,
            // Whoever looked for too short a time has seen no end either.
            Look::Restless(changed) if now >= deadline + watch::quiet(root) => {
                break vec![Awaited::Quiet(changed)];
            }
            _ => thread::sleep(POLL),
        }
    };
    status.wait_for(None);
    awaited
}

#[cfg(test)]
mod tests;
