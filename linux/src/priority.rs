//! How urgent the work of a thread is.

#![allow(unsafe_code)]

use nix::errno::Errno;

/// What the work of a thread is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// No one waits for it: it has all of the processor time that others leave, and a seventieth of a processor that
    /// others want.
    Background,
    /// Strangers may cause any amount of it: it has a quarter of a processor that others want.
    Strangers,
}

impl Work {
    /// Nice value; the weights are those of the kernel's table `sched_prio_to_weight`.
    const fn nice(self) -> libc::c_int {
        match self {
            Self::Background => 19,
            Self::Strangers => 5,
        }
    }
}

/// Lets the calling thread, and those that it starts, give way to all others for as much as its work allows.
///
/// # Errors
///
/// The kernel refuses it.
pub fn lower(work: Work) -> Result<(), Errno> {
    // SAFETY: The call takes numbers alone. On Linux it concerns the calling thread, whose number is 0.
    let outcome = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, work.nice()) };
    Errno::result(outcome).map(drop)
}
