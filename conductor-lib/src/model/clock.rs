//! What time it is, and durations as people read them.

use time::{Duration, OffsetDateTime};

/// Units of a duration, the longest first, in seconds.
const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];

/// Reads the time of day. Durations are measured by tokio's clock, which does not jump.
pub trait Clock: Send + Sync {
    /// The time now, in whole microseconds, as the store keeps it.
    fn now(&self) -> OffsetDateTime;
}

/// The clock of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> OffsetDateTime {
        let now = OffsetDateTime::now_utc();
        now.replace_microsecond(now.microsecond()).unwrap_or(now)
    }
}

/// A duration without its sign in its two largest units, such as `1 h 1 min`.
pub fn in_two_units(duration: Duration) -> String {
    let seconds = duration.whole_seconds().unsigned_abs();
    let first = UNITS.iter().position(|(unit, _)| seconds >= *unit).unwrap_or(UNITS.len() - 1);
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (unit, name) in &UNITS[first..UNITS.len().min(first + 2)] {
        let count = rest / unit;
        rest %= unit;
        if parts.is_empty() || count > 0 {
            parts.push(format!("{count} {name}"));
        }
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_has_whole_microseconds() {
        assert_eq!(SystemClock.now().nanosecond() % 1000, 0);
    }

    #[test]
    fn durations_have_at_most_two_units() {
        for (seconds, expected) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (61, "1 min 1 s"),
            (3_600, "1 h"),
            (3_661, "1 h 1 min"),
            (90_000, "1 d 1 h"),
            (86_400 * 3 + 59, "3 d"),
            (86_400 * 400 + 3_600 * 5, "400 d 5 h"),
            (-5, "5 s"),
        ] {
            assert_eq!(in_two_units(Duration::seconds(seconds)), expected);
        }
    }
}
