//! How urgent the work of a thread is.

#![allow(unsafe_code)]

use nix::errno::Errno;

/// Nice value of what nobody waits for: all of the processor time that others leave, and a seventieth of a
/// processor that others want.
const LOW: libc::c_int = 19;

/// Lets the calling thread, and those that it starts, give way to all others.
///
/// # Errors
///
/// The kernel refuses it.
pub fn lower() -> Result<(), Errno> {
    // SAFETY: The call takes numbers alone. On Linux it concerns the calling thread, whose number is 0.
    let outcome = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LOW) };
    Errno::result(outcome).map(drop)
}
