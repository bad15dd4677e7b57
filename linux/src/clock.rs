//! The clock of the machine.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_settime};
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// Sets the clock.
///
/// # Errors
///
/// `EPERM` without the right to do so, `EINVAL` for a time before 1970.
pub fn set(now: SystemTime) -> io::Result<()> {
    let since = now.duration_since(UNIX_EPOCH).map_err(|_| io::ErrorKind::InvalidInput)?;
    Ok(clock_settime(ClockId::CLOCK_REALTIME, TimeSpec::from_duration(since))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_time_before_the_epoch_is_refused() {
        let error = set(UNIX_EPOCH - Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
