//! How urgent the work of a thread is.

#![allow(unsafe_code)]

use nix::errno::Errno;

/// Nice value of what others need not wait for: a tenth of the processor time that they get, if they want it.
const LOW: libc::c_int = 10;

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
