//! A ramdisk whose agent is killed when a test wants it: by a program of its own in the machine, so that nothing
//! is left to luck.

use crate::ramdisk::{self, Addition};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// A step of all phases that kills the agent at once, and leaves a process behind that no signal to its group
/// reaches.
pub const KILL_NOW: &str = "kill_agent";
/// A step of all phases that succeeds; the agent is killed when a disk is written next.
pub const KILL_AT_NEXT_WRITE: &str = "kill_agent_at_next_write";
/// A step of all phases that results in the number of processes that [`KILL_NOW`] has left behind.
pub const COUNT_LINGERING: &str = "count_lingering";
/// What an operator reads of a step that was cut off so.
pub const REASON: &str = "SIGKILL";

const MANAGER: &str = include_str!("killer.sh");

/// Builds the ramdisk with the manager of these steps below `folder`.
///
/// # Errors
///
/// As [`ramdisk::build`].
pub fn ramdisk(folder: &Path) -> Result<PathBuf> {
    ramdisk::build(folder, &[Addition::HardwareManager("killer", MANAGER)])
}
