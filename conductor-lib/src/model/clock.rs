//! What time it is.

use time::OffsetDateTime;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_has_whole_microseconds() {
        assert_eq!(SystemClock.now().nanosecond() % 1000, 0);
    }
}
