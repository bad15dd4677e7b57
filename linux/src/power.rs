//! Flushing caches, power off and reboot (section 5.8 of the agent contract).

use nix::sys::reboot::{RebootMode, reboot};
use std::convert::Infallible;
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
    let (mode, letter) = stop.ways();
    in_order(|| reboot(mode), || fs::write("/proc/sysrq-trigger", letter))
}

/// The orderly way returns only when it is refused.
fn in_order(
    orderly: impl FnOnce() -> nix::Result<Infallible>,
    sysrq: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let Err(error) = orderly();
    tracing::warn!(%error, "the reboot system call was refused, using SysRq");
    sysrq()
}

impl Stop {
    /// The orderly way, and the letter of SysRq. Another kernel is never started without the firmware: devices
    /// would be in whatever state the agent left them (P15).
    fn ways(self) -> (RebootMode, &'static str) {
        match self {
            Self::PowerOff => (RebootMode::RB_POWER_OFF, "o"),
            Self::Reboot => (RebootMode::RB_AUTOBOOT, "b"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::PROGRAMS;
    use nix::errno::Errno;
    use std::cell::RefCell;

    #[test]
    fn f47_sysrq_comes_last() {
        let tried = RefCell::new(Vec::new());
        let orderly = || {
            tried.borrow_mut().push("orderly");
            Err(Errno::EPERM)
        };
        let sysrq = || {
            tried.borrow_mut().push("SysRq");
            Err(io::ErrorKind::ReadOnlyFilesystem.into())
        };
        let error = in_order(orderly, sysrq).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem);
        assert_eq!(*tried.borrow(), ["orderly", "SysRq"]);
    }

    #[test]
    fn p15_no_kernel_is_started_without_the_firmware() {
        for (stop, expected) in
            [(Stop::PowerOff, RebootMode::RB_POWER_OFF), (Stop::Reboot, RebootMode::RB_AUTOBOOT)]
        {
            assert_eq!(stop.ways().0, expected);
        }
        assert!(PROGRAMS.iter().all(|program| !program.name.contains("kexec")));
    }
}
