//! How long conductors take to answer heartbeats.

use serde::Serialize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long each answer took, in microseconds.
#[derive(Debug, Default)]
pub struct AnswerTimes(Mutex<Vec<u32>>);

/// What these come to, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct AnswerSummary {
    /// Heartbeats that were answered.
    pub count: usize,
    /// The time that half of them keep to.
    pub p50_ms: f64,
    /// The time that 99 of 100 keep to.
    pub p99_ms: f64,
    /// The longest.
    pub longest_ms: f64,
}

impl AnswerTimes {
    /// An answer took so long.
    pub fn note(&self, time: Duration) {
        let micros = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(micros);
    }

    /// What they come to.
    pub fn summary(&self) -> AnswerSummary {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        times.sort_unstable();
        let count = times.len();
        let of = |percent: usize| {
            let place = (count * percent).div_ceil(100).saturating_sub(1);
            times.get(place).map_or(0.0, |micros| f64::from(*micros) / 1000.0)
        };
        AnswerSummary { count, p50_ms: of(50), p99_ms: of(99), longest_ms: of(100) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_to_the_middle_one_the_99th_and_the_longest() {
        let times = AnswerTimes::default();
        assert_eq!(times.summary(), AnswerSummary::default());
        (1..=200).rev().for_each(|time| times.note(Duration::from_millis(time)));
        let expected = AnswerSummary { count: 200, p50_ms: 100.0, p99_ms: 198.0, longest_ms: 200.0 };
        assert_eq!(times.summary(), expected);
    }
}
