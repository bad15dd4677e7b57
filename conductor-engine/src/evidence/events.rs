//! What happened to each node, for progress bars and timelines.

use farrier_conductor::model::{mask_value, masked_text};
use farrier_conductor::task::event::EventKind;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::mem::discriminant;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::broadcast;
use uuid::Uuid;

/// Most events kept per node; older ones are dropped.
const LIMIT: usize = 256;

/// Most nodes whose events are kept; those of the node of which nothing was heard for the longest are dropped.
const NODES: usize = 10_000;

/// Longest report of an agent that is kept as an event, in bytes as JSON.
const REPORT: usize = 64 << 10;

/// An event with its time and place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Grows by one with each event of the node.
    pub sequence: u64,
    /// Seconds since 1970.
    pub at: f64,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Most nodes in the queue of a receiver; one that falls behind looks at all nodes.
const BEGINNINGS: usize = 64;

/// For how long a node is watched after a request for its events.
const WATCHED: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
struct Log {
    next: u64,
    events: VecDeque<Event>,
    /// When a client last requested the events.
    asked_at: Option<Instant>,
}

impl Log {
    fn is_watched(&self) -> bool {
        self.asked_at.is_some_and(|at| at.elapsed() < WATCHED)
    }
}

/// Publishes the nodes that a client begins to watch.
#[derive(Debug)]
struct Watched(broadcast::Sender<Uuid>);

impl Default for Watched {
    fn default() -> Self {
        Self(broadcast::Sender::new(BEGINNINGS))
    }
}

impl Log {
    /// Progress replaces the progress right before it, and belongs after the start of writing.
    fn push(&mut self, kind: EventKind) {
        if matches!(kind, EventKind::Progress(_)) {
            match self.events.back().map(|last| &last.kind) {
                Some(EventKind::WriteStarted | EventKind::ImageWritten) => {}
                Some(EventKind::Progress(_)) => drop(self.events.pop_back()),
                _ => return,
            }
        }
        if self.events.len() == LIMIT {
            self.events.pop_front();
        }
        self.events.push_back(Event { sequence: self.next, at: now(), kind });
        self.next += 1;
    }
}

/// The events of the running or last operation of every node, in memory.
#[derive(Debug, Default)]
pub struct EventLog {
    logs: Mutex<HashMap<Uuid, Log>>,
    watched: Watched,
}

impl EventLog {
    /// Starts the log of a new operation.
    pub(crate) fn begin(&self, node: Uuid) {
        self.with(node, |log| log.events.clear());
    }

    /// The sequence number of the next event.
    pub fn next_sequence(&self, node: Uuid) -> u64 {
        self.with(node, |log| log.next)
    }

    /// Records an event. Progress belongs between the start of writing and its proof, and is
    /// dropped elsewhere: it is asked for beside the commands and may come late. It replaces the
    /// progress right before it, so that it never pushes the events of a timeline out.
    pub fn push(&self, node: Uuid, kind: EventKind) {
        let kind = bounded(kind);
        self.with(node, |log| log.push(kind));
    }

    /// Records an event unless the running operation has one of its kind.
    pub fn push_once(&self, node: Uuid, kind: EventKind) {
        let kind = bounded(kind);
        self.with(node, |log| {
            if !log.events.iter().any(|event| discriminant(&event.kind) == discriminant(&kind)) {
                log.push(kind);
            }
        });
    }

    /// The events from sequence number `since` on.
    pub fn since(&self, node: Uuid, since: u64) -> Vec<Event> {
        let (events, begins) = self.with(node, |log| {
            let begins = !log.is_watched();
            log.asked_at = Some(Instant::now());
            (log.events.iter().filter(|event| event.sequence >= since).cloned().collect(), begins)
        });
        if begins {
            // An error means that there is no receiver.
            drop(self.watched.0.send(node));
        }
        events
    }

    /// Whether a client has requested the events of a node in the last seconds, and so may wait for its progress.
    pub(crate) fn is_watched(&self, node: Uuid) -> bool {
        self.lock().get(&node).is_some_and(Log::is_watched)
    }

    /// The nodes that a client begins to watch from now on.
    pub(crate) fn watched(&self) -> broadcast::Receiver<Uuid> {
        self.watched.0.subscribe()
    }

    /// Forgets a node.
    pub fn forget(&self, node: Uuid) {
        self.lock().remove(&node);
    }

    fn with<T>(&self, node: Uuid, act: impl FnOnce(&mut Log) -> T) -> T {
        let mut logs = self.lock();
        if logs.len() >= NODES && !logs.contains_key(&node) {
            let latest = |log: &Log| log.events.back().map_or(0.0, |event| event.at);
            let silent = logs.iter().min_by(|(_, one), (_, other)| latest(one).total_cmp(&latest(other)));
            if let Some(silent) = silent.map(|(node, _)| *node) {
                logs.remove(&silent);
            }
        }
        act(logs.entry(node).or_default())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Uuid, Log>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An event without secrets, and without a report that is too long.
fn bounded(kind: EventKind) -> EventKind {
    match kind {
        EventKind::ImageVerified { report: Some(mut report) } => {
            let is_short = report.to_string().len() <= REPORT;
            mask_value(&mut report);
            EventKind::ImageVerified { report: Some(report).filter(|_| is_short) }
        }
        EventKind::Failed { error } => EventKind::Failed { error: masked_text(&error).into_owned() },
        kind => kind,
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_protocol::progress::{Phase, Progress};
    use serde_json::Value;

    fn progress(bytes: u64) -> EventKind {
        EventKind::Progress(Progress { phase: Phase::Writing, bytes, ..Progress::default() })
    }

    #[test]
    fn an_event_reads_as_one_flat_object() {
        let log = EventLog::default();
        log.push(Uuid::nil(), EventKind::WriteStarted);
        log.push(Uuid::nil(), progress(7));
        let value = serde_json::to_value(&log.since(Uuid::nil(), 1)[0]).unwrap();
        assert_eq!(value["event"], "progress");
        assert_eq!(value["phase"], "writing");
        assert_eq!(value["bytes"], 7);
        assert!(value["at"].as_f64().unwrap() > 1.6e9);
        assert_eq!(serde_json::from_value::<Event>(value).unwrap(), log.since(Uuid::nil(), 1)[0]);
    }

    #[test]
    fn progress_never_pushes_the_timeline_out() {
        let log = EventLog::default();
        log.push(Uuid::nil(), EventKind::WriteStarted);
        for bytes in 0..10_000 {
            log.push(Uuid::nil(), progress(bytes));
        }
        let events = log.since(Uuid::nil(), 0);
        assert_eq!(events.len(), 2);
        assert_eq!(events[1].sequence, 10_000);
        assert!(log.since(Uuid::nil(), 10_001).is_empty());
    }

    #[test]
    fn e16_events_have_a_limit_in_all() {
        let log = EventLog::default();
        for number in 0..NODES as u128 + 10 {
            log.push(Uuid::from_u128(number), EventKind::PowerOn);
        }
        assert_eq!(log.lock().len(), NODES);
        assert_eq!(log.since(Uuid::from_u128(NODES as u128 + 9), 0).len(), 1);
        let long = Value::String("x".repeat(REPORT));
        log.push(Uuid::nil(), EventKind::ImageVerified { report: Some(long) });
        assert_eq!(log.since(Uuid::nil(), 0).last().unwrap().kind, EventKind::ImageVerified { report: None });
    }

    #[test]
    fn progress_that_comes_late_is_dropped() {
        let log = EventLog::default();
        for kind in [EventKind::FirstHeartbeat, EventKind::ImageVerified { report: None }, EventKind::Active]
        {
            log.push(Uuid::nil(), kind);
            log.push(Uuid::nil(), progress(1));
        }
        assert_eq!(log.since(Uuid::nil(), 0).len(), 3);
    }

    #[test]
    fn a_log_is_bounded_and_an_operation_starts_it_anew() {
        let log = EventLog::default();
        for _ in 0..LIMIT + 5 {
            log.push(Uuid::nil(), EventKind::PowerOn);
        }
        assert_eq!(log.since(Uuid::nil(), 0).len(), LIMIT);
        log.begin(Uuid::nil());
        let first = log.next_sequence(Uuid::nil());
        assert_eq!(first, (LIMIT + 5) as u64);
        log.push_once(Uuid::nil(), EventKind::Active);
        log.push_once(Uuid::nil(), EventKind::Active);
        assert_eq!(log.since(Uuid::nil(), first).len(), 1);
    }
}
