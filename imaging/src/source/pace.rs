//! Whether a body comes fast enough. A server that sends a byte a minute never stalls, and would hold a machine for
//! ever.

use std::time::Duration;

/// How fast a body has to come, on average.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeastRate {
    /// Bytes a second; 0 for no limit.
    pub bytes_per_second: u64,
    /// The time of waiting over which that is measured.
    pub over: Duration,
}

impl Default for LeastRate {
    fn default() -> Self {
        Self { bytes_per_second: 64 << 10, over: Duration::from_secs(300) }
    }
}

/// What came of a body, and how long it was waited for. Time in which nobody asks for more, such as while a disk is
/// slow, does not count.
#[derive(Debug, Default)]
pub(super) struct Pace {
    bytes: u64,
    waited: Duration,
}

impl Pace {
    /// Counts a part that came after some waiting. The error says how slow the body is.
    pub(super) fn count(&mut self, least: LeastRate, bytes: u64, waited: Duration) -> Result<(), String> {
        self.bytes += bytes;
        self.waited += waited;
        if self.waited < least.over {
            return Ok(());
        }
        let Self { bytes, waited } = std::mem::take(self);
        if bytes as f64 >= least.bytes_per_second as f64 * waited.as_secs_f64() {
            return Ok(());
        }
        Err(format!(
            "only {bytes} bytes came in {} s, and {} bytes a second are the least",
            waited.as_secs(),
            least.bytes_per_second
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g11_an_average_is_looked_at_and_not_a_single_part() {
        let (least, kib) = (LeastRate { bytes_per_second: 1024, over: Duration::from_secs(10) }, 1 << 10);
        for (parts, expected) in [
            (vec![(1, 9)], true),
            (vec![(1, 9), (1, 9)], false),
            (vec![(1, 59)], false),
            (vec![(0, 9), (20 * kib, 1)], true),
            (vec![(9 * kib, 10)], false),
            (vec![(10 * kib, 10), (1, 9), (1, 1)], false),
            (vec![(100 * kib, 10), (1, 9)], true),
        ] {
            let mut pace = Pace::default();
            let mut count = |(bytes, seconds): &(u64, u64)| {
                pace.count(least, *bytes, Duration::from_secs(*seconds)).is_ok()
            };
            assert_eq!(parts.iter().all(&mut count), expected, "{parts:?}");
        }
        let none = LeastRate { bytes_per_second: 0, over: Duration::ZERO };
        assert_eq!(Pace::default().count(none, 0, Duration::from_secs(60)), Ok(()));
    }
}
