//! The clocks of the machine: the kernel's, and the one that goes on without power.

#![allow(unsafe_code)]

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_settime};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The clock that goes on without power.
const HARDWARE_CLOCK: &str = "/dev/rtc0";

/// `struct rtc_time` of `linux/rtc.h`: the first fields of a `struct tm`, in UTC.
#[repr(C)]
#[derive(Debug, PartialEq, Eq)]
struct RtcTime {
    seconds: libc::c_int,
    minutes: libc::c_int,
    hours: libc::c_int,
    day: libc::c_int,
    month: libc::c_int,
    year: libc::c_int,
    unused: [libc::c_int; 3],
}

mod request {
    nix::ioctl_write_ptr!(rtc_set_time, b'p', 0x0a, super::RtcTime);
}

/// Sets the clock.
///
/// # Errors
///
/// `EPERM` without the right to do so, `EINVAL` for a time before 1970.
pub fn set(now: SystemTime) -> io::Result<()> {
    let since = now.duration_since(UNIX_EPOCH).map_err(|_| io::ErrorKind::InvalidInput)?;
    Ok(clock_settime(ClockId::CLOCK_REALTIME, TimeSpec::from_duration(since))?)
}

/// Sets the clock that runs without power to the time of the kernel's: the next system of this
/// machine starts with it (F48).
///
/// # Errors
///
/// There is no such clock, or it refuses.
pub fn store() -> io::Result<()> {
    let clock = File::open(HARDWARE_CLOCK)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|_| io::ErrorKind::InvalidInput)?;
    let time = rtc_time(now)?;
    // SAFETY: the descriptor is open, and the kernel reads one `struct rtc_time` from the pointer,
    // which `time` is for the whole call.
    unsafe { request::rtc_set_time(clock.as_raw_fd(), &raw const time) }?;
    Ok(())
}

/// Time since 1970 as date and time of day in UTC.
fn rtc_time(since: Duration) -> io::Result<RtcTime> {
    let seconds = TimeSpec::from_duration(since).tv_sec();
    let mut time = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are valid for the call, which only reads `seconds`; all fields of the
    // structure are integers or a pointer, so that zeros are a value of it even if nothing is written.
    let time = unsafe {
        if libc::gmtime_r(&raw const seconds, time.as_mut_ptr()).is_null() {
            return Err(io::Error::last_os_error());
        }
        time.assume_init()
    };
    Ok(RtcTime {
        seconds: time.tm_sec,
        minutes: time.tm_min,
        hours: time.tm_hour,
        day: time.tm_mday,
        month: time.tm_mon,
        year: time.tm_year,
        unused: [0; 3],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f48_the_hardware_clock_gets_the_date() {
        for (seconds, expected) in [
            (0, (1970, 1, 1, 0, 0, 0)),
            (951_782_399, (2000, 2, 28, 23, 59, 59)),
            (951_782_400, (2000, 2, 29, 0, 0, 0)),
            (951_868_800, (2000, 3, 1, 0, 0, 0)),
            (1_795_305_600, (2026, 11, 22, 0, 0, 0)),
            (4_107_542_399, (2100, 2, 28, 23, 59, 59)),
            (4_107_542_400, (2100, 3, 1, 0, 0, 0)),
            (1_735_689_599, (2024, 12, 31, 23, 59, 59)),
        ] {
            let time = rtc_time(Duration::from_secs(seconds)).unwrap();
            let read = (time.year + 1900, time.month + 1, time.day, time.hours, time.minutes, time.seconds);
            assert_eq!(read, expected, "{seconds}");
        }
    }

    #[test]
    fn a_time_before_the_epoch_is_refused() {
        let error = set(UNIX_EPOCH - Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
