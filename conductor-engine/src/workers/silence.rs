//! How long the agent of a node that waits has been silent.

use crate::explain::who_acts::Signs;
use crate::store::Record;
use farrier_conductor::model::StepKind;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// What was seen of a node that waits.
///
/// Silence is measured by a clock that does not jump, and only while this conductor could hear: when it starts, or was
/// stopped for a while, silence begins anew. An agent that calls and cannot be reached is as silent as one that does not
/// call.
#[derive(Debug)]
pub(crate) struct Silence {
    signs: Option<Signs>,
    silent_since: Instant,
    looked_at: Instant,
    /// The heartbeat that was last gone on with.
    handled: Option<OffsetDateTime>,
    /// Whether a heartbeat is why the worker of the node has begun.
    is_woken: bool,
    /// Since when the agent at an address cannot be reached, and why.
    unreached: Option<Unreached>,
}

#[derive(Debug)]
struct Unreached {
    url: Option<String>,
    since: Instant,
    reason: String,
}

impl Silence {
    /// Begins at `now`.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            signs: None,
            silent_since: now,
            looked_at: now,
            handled: None,
            is_woken: false,
            unreached: None,
        }
    }

    /// Begins at `now`, because of a heartbeat.
    pub(crate) fn woken(now: Instant) -> Self {
        Self { is_woken: true, ..Self::new(now) }
    }

    /// Looks at a record, at most `pause` after the last time unless the conductor was stopped. A heartbeat that was
    /// recorded before the first look is an old one, unless nothing has begun for which it could have come.
    pub(crate) fn look(&mut self, record: &Record, pause: Duration, now: Instant) {
        self.listen(pause, now);
        if self.signs.is_none() && !self.is_woken && has_begun(record) {
            self.handled(record);
        }
        let signs = Some(Signs::of(record));
        if self.signs != signs {
            (self.signs, self.silent_since) = (signs, now);
        }
        self.unreached.take_if(|unreached| unreached.url != record.session.agent_url);
    }

    /// The node pauses: nothing counts as silence until it goes on. What was gone on with stays so.
    pub(crate) fn pause(&mut self, now: Instant) {
        (self.silent_since, self.unreached) = (now, None);
    }

    /// The agent of a record was reached.
    pub(crate) fn reached(&mut self) {
        self.unreached = None;
    }

    /// The agent of a record could not be reached.
    pub(crate) fn unreached(&mut self, record: &Record, reason: String, now: Instant) {
        let since = self.unreached.as_ref().map_or(now, |unreached| unreached.since);
        self.unreached = Some(Unreached { url: record.session.agent_url.clone(), since, reason });
    }

    /// Why the agent cannot be reached, if so.
    pub(crate) fn why_unreached(&self) -> Option<&str> {
        self.unreached.as_ref().map(|unreached| unreached.reason.as_str())
    }

    /// Stays awake while something else takes long: an agent that does not answer, or a BMC.
    pub(crate) async fn during<T>(&mut self, pause: Duration, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep(pause) => self.listen(pause, Instant::now()),
            }
        }
    }

    fn listen(&mut self, pause: Duration, now: Instant) {
        let was_deaf = now - self.looked_at > pause * 2 + Duration::from_secs(1);
        self.looked_at = now;
        if was_deaf {
            self.silent_since = now;
            if let Some(unreached) = &mut self.unreached {
                unreached.since = now;
            }
        }
    }

    /// How long nothing was heard, and no state began; or for how long the agent could not be reached.
    pub(crate) fn duration(&self, now: Instant) -> Duration {
        let unreached = self.unreached.as_ref().map(|unreached| unreached.since);
        now - unreached.map_or(self.silent_since, |since| since.min(self.silent_since))
    }

    /// Whether there is a heartbeat that was not gone on with.
    pub(crate) fn is_called(&self, record: &Record) -> bool {
        let heard = record.session.agent_last_heartbeat;
        heard.is_some() && self.handled != heard
    }

    /// The heartbeat of a record was gone on with. Until then it stays, whatever comes in between (lesson F40).
    pub(crate) fn handled(&mut self, record: &Record) {
        self.handled = record.session.agent_last_heartbeat;
    }
}

/// Whether what a node waits for has begun already: a step in its agent, which is asked for it. In maintenance the next
/// heartbeat may end an operation, and an old one must not.
fn has_begun(record: &Record) -> bool {
    let node = &record.node;
    let runs = StepKind::of(node.provision_state).is_some_and(|kind| {
        node.step(kind).is_some_and(|step| step.in_band) && !node.plan(kind).runs_again()
    });
    runs || node.maintenance
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::{AgentSession, NewNode, Node, PlannedStep, ProvisionState};

    const PAUSE: Duration = Duration::from_secs(5);

    fn record() -> Record {
        Record {
            node: Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH),
            session: AgentSession::default(),
            order: None,
            epoch: 0,
            lease_expires_at: None,
        }
    }

    #[test]
    fn silence_ends_with_every_sign() {
        let mut now = Instant::now();
        let (mut silence, mut record) = (Silence::new(now), record());
        silence.look(&record, PAUSE, now);
        for round in 1..=3 {
            for _ in 0..4 {
                now += PAUSE;
                silence.look(&record, PAUSE, now);
            }
            assert_eq!(silence.duration(now), PAUSE * 4);
            record.session.agent_last_heartbeat = Some(OffsetDateTime::UNIX_EPOCH + PAUSE * round);
            silence.look(&record, PAUSE, now);
            assert_eq!(silence.duration(now), Duration::ZERO);
        }
    }

    /// A conductor that was stopped for an hour heard nobody; that is no silence of an agent's.
    #[test]
    fn a_conductor_that_was_stopped_does_not_take_its_own_absence_for_silence() {
        let start = Instant::now();
        let (mut silence, record) = (Silence::new(start), record());
        silence.look(&record, PAUSE, start);
        let end = start + Duration::from_secs(3600);
        silence.look(&record, PAUSE, end);
        assert_eq!(silence.duration(end), Duration::ZERO);
    }

    /// Whatever an agent or a BMC keeps a conductor waiting for, it would have heard a heartbeat meanwhile.
    #[test]
    fn silence_lasts_while_something_else_takes_long() {
        let start = Instant::now();
        let (mut silence, record) = (Silence::new(start), record());
        silence.look(&record, PAUSE, start);
        (1..10).for_each(|round| silence.listen(PAUSE, start + PAUSE * round));
        let end = start + PAUSE * 10;
        silence.look(&record, PAUSE, end);
        assert_eq!(silence.duration(end), PAUSE * 10);
    }

    #[test]
    fn e09_a_clock_that_is_set_back_loses_no_heartbeat() {
        let (mut now, mut record) = (Instant::now(), record());
        let hour = OffsetDateTime::UNIX_EPOCH + time::Duration::HOUR;
        // The node began to wait when the clock was an hour ahead.
        record.node.provision_updated_at = hour;
        let mut silence = Silence::new(now);
        silence.look(&record, PAUSE, now);
        for minute in 1..=3 {
            now += PAUSE;
            record.session.agent_last_heartbeat =
                Some(OffsetDateTime::UNIX_EPOCH + time::Duration::minutes(minute));
            silence.look(&record, PAUSE, now);
            assert_eq!(silence.duration(now), Duration::ZERO, "{minute}");
        }
        // And one that goes back between two heartbeats.
        now += PAUSE;
        record.session.agent_last_heartbeat = Some(OffsetDateTime::UNIX_EPOCH);
        silence.look(&record, PAUSE, now);
        assert_eq!(silence.duration(now), Duration::ZERO);
    }

    #[test]
    fn e01_an_agent_that_calls_and_cannot_be_reached_is_silent() {
        let (mut now, mut record) = (Instant::now(), record());
        record.session.agent_url = Some("https://192.0.2.1:9999".into());
        let mut silence = Silence::new(now);
        silence.look(&record, PAUSE, now);
        let begun = now;
        for round in 1..=3 {
            silence.unreached(&record, "refused".into(), now);
            now += PAUSE;
            record.session.agent_last_heartbeat = Some(OffsetDateTime::UNIX_EPOCH + PAUSE * round);
            silence.look(&record, PAUSE, now);
            assert_eq!(silence.duration(now), now - begun, "{round}");
        }
        assert_eq!(silence.why_unreached(), Some("refused"));
        silence.reached();
        assert_eq!(silence.duration(now), Duration::ZERO);
        // The next agent is another one.
        silence.unreached(&record, "refused".into(), now);
        record.session.agent_url = Some("https://192.0.2.2:9999".into());
        silence.look(&record, PAUSE, now + PAUSE);
        assert_eq!(silence.why_unreached(), None);
    }

    #[test]
    fn e01_a_worker_that_begins_takes_no_old_heartbeat_for_a_new_one() {
        let now = Instant::now();
        let mut record = record();
        record.session.agent_last_heartbeat = Some(OffsetDateTime::UNIX_EPOCH);
        let is_called = |record: &Record, mut silence: Silence| {
            silence.look(record, PAUSE, now);
            silence.is_called(record)
        };
        // Nothing has begun: the agent that called is to be asked for its steps.
        record.node.provision_state = ProvisionState::CleanWait;
        assert!(is_called(&record, Silence::new(now)));
        record.node.maintenance = true;
        assert!(!is_called(&record, Silence::new(now)));
        record.node.maintenance = false;
        let step = PlannedStep { in_band: true, ..PlannedStep::new("deploy", "erase_devices", 10) };
        record.node.clean_step = Some(step);
        assert!(!is_called(&record, Silence::new(now)));
        assert!(is_called(&record, Silence::woken(now)));
        record.node.driver_internal_info.clean.skip_current = Some(false);
        assert!(is_called(&record, Silence::new(now)));
    }

    #[test]
    fn each_heartbeat_is_gone_on_with_once() {
        let (mut silence, mut record) = (Silence::new(Instant::now()), record());
        assert!(!silence.is_called(&record));
        record.session.agent_last_heartbeat = Some(OffsetDateTime::UNIX_EPOCH);
        assert!(silence.is_called(&record) && silence.is_called(&record));
        silence.handled(&record);
        assert!(!silence.is_called(&record));
    }
}
