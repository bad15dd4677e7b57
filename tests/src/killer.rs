//! A ramdisk whose agent is killed when a test wants it: by a program of its own in the machine, so that nothing
//! is left to luck.

use crate::environment;
use anyhow::{Context, Result, bail};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

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
/// What the builder says.
pub fn ramdisk(folder: &Path) -> Result<PathBuf> {
    let (manager, output) = (folder.join("killer"), folder.join("dist"));
    fs::write(&manager, MANAGER)?;
    fs::set_permissions(&manager, Permissions::from_mode(0o755))?;
    let dist = environment::path("FARRIER_DIST");
    let mut build = Command::new(environment::path("FARRIER_IMAGE_BUILDER"));
    build.arg("build").arg("--kernel").arg(dist.join("vmlinuz"));
    build.arg("--modules").arg(environment::path("FARRIER_MODULES"));
    build.arg("--programs-root").arg(environment::path("FARRIER_PROGRAMS"));
    build.arg("--cache").arg(environment::path("FARRIER_MODULE_CACHE"));
    build.arg("--agent").arg(dist.join("farrier-agent")).arg("--output").arg(&output);
    let built = build.arg("--hardware-manager").arg(&manager).output().context("cannot start the builder")?;
    if !built.status.success() {
        bail!("{}", String::from_utf8_lossy(&built.stderr));
    }
    Ok(output)
}
