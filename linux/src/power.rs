//! Flushing caches, power off and reboot (section 5.8 of the agent contract).

use nix::sys::reboot::{RebootMode, reboot};
use std::fs;
use std::io;

/// How the machine stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Power off.
    PowerOff,
    /// Start again.
    Reboot,
}

/// Writes every dirty page of the machine to its devices and waits for it, then drops clean
/// caches so that later reads see the devices (D06).
///
/// # Errors
///
/// Dropping the caches failed; the data itself is written by then.
pub fn sync_all() -> io::Result<()> {
    nix::unistd::sync();
    fs::write("/proc/sys/vm/drop_caches", "3\n")
}

/// Stops the machine, by the orderly system call first and by SysRq when that fails (F47).
///
/// Data must have been written before: see [`sync_all`].
///
/// # Errors
///
/// Both ways failed; the error is that of the second.
pub fn stop(stop: Stop) -> io::Result<()> {
    let (mode, sysrq) = match stop {
        Stop::PowerOff => (RebootMode::RB_POWER_OFF, "o"),
        Stop::Reboot => (RebootMode::RB_AUTOBOOT, "b"),
    };
    let Err(error) = reboot(mode);
    tracing::warn!(%error, "the reboot system call was refused, using SysRq");
    fs::write("/proc/sysrq-trigger", sysrq)
}
