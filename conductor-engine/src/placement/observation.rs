//! Which conductors live, seen by their counters: no clock of another host decides, and none that jumps.

use crate::store::ConductorRecord;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// When the record of each conductor was seen to change last.
#[derive(Debug, Default)]
pub(crate) struct Observation(HashMap<String, Seen>);

#[derive(Debug)]
struct Seen {
    process: Uuid,
    counter: i64,
    since: Instant,
}

impl Observation {
    /// Takes note of all records as they were read at `now`, and returns for how long each has not changed. One that is
    /// seen for the first time may live: what is not known is not dead.
    pub(crate) fn note(&mut self, records: &[ConductorRecord], now: Instant) -> Vec<Duration> {
        self.0.retain(|name, _| records.iter().any(|record| record.name == *name));
        let silence = |record: &ConductorRecord| {
            let (process, counter) = (record.process.start, record.counter);
            let seen = self.0.entry(record.name.clone()).or_insert(Seen { process, counter, since: now });
            if (seen.process, seen.counter) != (process, counter) {
                *seen = Seen { process, counter, since: now };
            }
            now - seen.since
        };
        records.iter().map(silence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ProcessId;
    use time::OffsetDateTime;

    fn record(name: &str, counter: i64, clock: OffsetDateTime) -> ConductorRecord {
        ConductorRecord {
            name: name.into(),
            process: ProcessId { start: Uuid::nil(), host_process: String::new() },
            conductor_group: String::new(),
            hardware: Default::default(),
            counter,
            registered_at: clock,
            updated_at: clock,
        }
    }

    #[test]
    fn e08_a_conductor_is_silent_when_its_counter_stands_still_whatever_its_clock_says() {
        let (mut seen, start, second) = (Observation::default(), Instant::now(), Duration::from_secs(1));
        let hour = |hours: i64| OffsetDateTime::UNIX_EPOCH + time::Duration::hours(hours);
        let first = [record("a", 5, hour(1)), record("b", 7, hour(0))];
        assert_eq!(seen.note(&first, start), [Duration::ZERO; 2]);
        let later = [record("a", 5, hour(2)), record("b", 8, hour(-1))];
        assert_eq!(seen.note(&later, start + second), [second, Duration::ZERO]);
        // A process that starts again may start with the same number.
        let mut restarted = record("a", 5, hour(2));
        restarted.process.start = Uuid::max();
        assert_eq!(seen.note(&[restarted], start + second * 2), [Duration::ZERO]);
    }
}
