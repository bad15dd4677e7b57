//! Which conductors live, seen by their counters: no clock of another host decides, and none that jumps. The clock of the store
//! only tells for how long a conductor was silent before its record was seen first.

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
    /// The time between its last renewal and `since`.
    before: Duration,
}

impl Observation {
    /// Takes note of all records as they were read at `now`, each with the time since its last renewal by the clock of the
    /// store, and returns for how long each has not changed.
    pub(crate) fn note(&mut self, records: &[(ConductorRecord, Duration)], now: Instant) -> Vec<Duration> {
        self.0.retain(|name, _| records.iter().any(|(record, _)| record.name == *name));
        let silence = |(record, by_store): &(ConductorRecord, Duration)| {
            let (process, counter) = (record.process.start, record.counter);
            let first = Seen { process, counter, since: now, before: *by_store };
            let seen = self.0.entry(record.name.clone()).or_insert(first);
            if (seen.process, seen.counter) != (process, counter) {
                *seen = Seen { process, counter, since: now, before: Duration::ZERO };
            }
            seen.before + (now - seen.since)
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
        let first = [(record("a", 5, hour(1)), Duration::ZERO), (record("b", 7, hour(0)), Duration::ZERO)];
        assert_eq!(seen.note(&first, start), [Duration::ZERO; 2]);
        let later = [(record("a", 5, hour(2)), second * 3600), (record("b", 8, hour(-1)), second * 3600)];
        assert_eq!(seen.note(&later, start + second), [second, Duration::ZERO]);
        // A process that starts again may start with the same number.
        let mut restarted = record("a", 5, hour(2));
        restarted.process.start = Uuid::max();
        assert_eq!(seen.note(&[(restarted, Duration::ZERO)], start + second * 2), [Duration::ZERO]);
    }

    #[test]
    fn n28_a_conductor_was_silent_before_its_record_is_seen_first() {
        let (mut seen, start, second) = (Observation::default(), Instant::now(), Duration::from_secs(1));
        let dead = |by_store| [(record("a", 5, OffsetDateTime::UNIX_EPOCH), by_store)];
        assert_eq!(seen.note(&dead(second * 90), start), [second * 90]);
        assert_eq!(seen.note(&dead(second * 3), start + second), [second * 91]);
        let renewed = [(record("a", 6, OffsetDateTime::UNIX_EPOCH), second * 90)];
        assert_eq!(seen.note(&renewed, start + second * 2), [Duration::ZERO]);
    }
}
