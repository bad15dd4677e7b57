//! Watches over a node that waits: how long its agent has been silent, and whether its machine is on.

use crate::attention::last_sign;
use crate::model::PowerState;
use crate::store::Record;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// Equal readings after which a machine is believed to be off: BMCs err.
const OFF_READINGS: u32 = 2;

/// What was seen of a node that waits.
///
/// Silence is measured by a clock that does not jump, and only while this conductor could hear: when it starts, or was
/// stopped for a while, silence begins anew.
#[derive(Debug)]
pub(super) struct Vigil {
    last_sign: Option<OffsetDateTime>,
    silent_since: Instant,
    looked_at: Instant,
    off_readings: u32,
    /// The heartbeat that was last gone on with.
    handled: Option<OffsetDateTime>,
}

impl Vigil {
    /// Begins at `now`.
    pub(super) fn new(now: Instant) -> Self {
        Self { last_sign: None, silent_since: now, looked_at: now, off_readings: 0, handled: None }
    }

    /// Looks at a record, at most `pause` after the last time unless the conductor was stopped.
    pub(super) fn look(&mut self, record: &Record, pause: Duration, now: Instant) {
        self.listen(pause, now);
        let sign = Some(last_sign(record));
        if self.last_sign != sign {
            (self.last_sign, self.silent_since) = (sign, now);
        }
    }

    /// Stays awake while something else takes long: an agent that does not answer, or a BMC.
    pub(super) async fn during<T>(&mut self, pause: Duration, work: impl Future<Output = T>) -> T {
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
        }
    }

    /// How long nothing was heard, and no state began.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        now - self.silent_since
    }

    /// Takes note of a reading, and tells whether the machine is off.
    pub(super) fn is_off(&mut self, reading: PowerState) -> bool {
        self.off_readings = if reading == PowerState::Off { self.off_readings + 1 } else { 0 };
        self.off_readings >= OFF_READINGS
    }

    /// Whether there is a heartbeat that was not gone on with.
    pub(super) fn is_called(&self, record: &Record) -> bool {
        let heard = record.session.agent_last_heartbeat;
        heard.is_some() && self.handled != heard
    }

    /// The heartbeat of a record was gone on with. Until then it stays, whatever comes in between (lesson F40).
    pub(super) fn handled(&mut self, record: &Record) {
        self.handled = record.session.agent_last_heartbeat;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AgentSession, NewNode, Node};

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
        let (mut vigil, mut record) = (Vigil::new(now), record());
        vigil.look(&record, PAUSE, now);
        for round in 1..=3 {
            for _ in 0..4 {
                now += PAUSE;
                vigil.look(&record, PAUSE, now);
            }
            assert_eq!(vigil.silence(now), PAUSE * 4);
            record.session.agent_last_heartbeat = Some(OffsetDateTime::UNIX_EPOCH + PAUSE * round);
            vigil.look(&record, PAUSE, now);
            assert_eq!(vigil.silence(now), Duration::ZERO);
        }
    }

    /// A conductor that was stopped for an hour heard nobody; that is no silence of an agent's.
    #[test]
    fn a_conductor_that_was_stopped_does_not_take_its_own_absence_for_silence() {
        let start = Instant::now();
        let (mut vigil, record) = (Vigil::new(start), record());
        vigil.look(&record, PAUSE, start);
        let end = start + Duration::from_secs(3600);
        vigil.look(&record, PAUSE, end);
        assert_eq!(vigil.silence(end), Duration::ZERO);
    }

    /// Whatever an agent or a BMC keeps a conductor waiting for, it would have heard a heartbeat meanwhile.
    #[test]
    fn silence_lasts_while_something_else_takes_long() {
        let start = Instant::now();
        let (mut vigil, record) = (Vigil::new(start), record());
        vigil.look(&record, PAUSE, start);
        (1..10).for_each(|round| vigil.listen(PAUSE, start + PAUSE * round));
        let end = start + PAUSE * 10;
        vigil.look(&record, PAUSE, end);
        assert_eq!(vigil.silence(end), PAUSE * 10);
    }

    #[test]
    fn one_reading_off_is_not_believed() {
        let mut vigil = Vigil::new(Instant::now());
        assert!(!vigil.is_off(PowerState::Off));
        assert!(!vigil.is_off(PowerState::On));
        assert!(!vigil.is_off(PowerState::Off));
        assert!(vigil.is_off(PowerState::Off));
    }

    #[test]
    fn each_heartbeat_is_gone_on_with_once() {
        let (mut vigil, mut record) = (Vigil::new(Instant::now()), record());
        assert!(!vigil.is_called(&record));
        record.session.agent_last_heartbeat = Some(OffsetDateTime::UNIX_EPOCH);
        assert!(vigil.is_called(&record) && vigil.is_called(&record));
        vigil.handled(&record);
        assert!(!vigil.is_called(&record));
    }
}
