//! Who moves a node on.
//!
//! A node that is not at rest has a lease, which ends or expires, or a deadline; a node at rest is moved by its
//! operator alone. So none is ever forgotten: [`Attention::Nobody`] must not be.

use crate::records::PendingOrder;
use crate::store::Record;
use farrier_conductor::model::{Activity, Family};
use farrier_conductor::settings::Settings;
use time::OffsetDateTime;

/// Who moves a node on, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attention {
    /// An operator: the node rests, is held or has failed, or waits in maintenance or without a deadline.
    Operator,
    /// A conductor works on it. When its lease expires, another one continues.
    Conductor {
        /// Which.
        holder: String,
        /// When the lease expires.
        until: OffsetDateTime,
    },
    /// Its agent must call. When it does not, the operation fails.
    Agent {
        /// The deadline.
        until: OffsetDateTime,
    },
    /// No one must act.
    Nobody,
}

impl Attention {
    /// Who moves a node on.
    pub fn of(record: &Record, settings: &Settings) -> Self {
        let Record { node, order, lease_expires_at, .. } = record;
        if let (Some(holder), Some(until)) = (&node.reservation, lease_expires_at) {
            return Self::Conductor { holder: holder.clone(), until: *until };
        }
        match (order, node.provision_state.activity()) {
            (_, Activity::Wait) => match settings.callback_timeout(node.provision_state) {
                Some(timeout) if !node.maintenance => Self::Agent { until: last_sign(record) + timeout },
                _ => Self::Operator,
            },
            (Some(PendingOrder { .. }), _) | (None, Activity::Work) => Self::Nobody,
            (None, Activity::Rest | Activity::Hold | Activity::Failed) => Self::Operator,
        }
    }
}

/// When the agent was last heard of, or its node last moved.
fn last_sign(record: &Record) -> OffsetDateTime {
    let Signs { moved, heard } = Signs::of(record);
    heard.map_or(moved, |heard| heard.max(moved))
}

/// What tells that an operation is alive. Each of them counts when it changes: a clock that was set back makes neither
/// earlier than the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signs {
    /// When the node last moved.
    moved: OffsetDateTime,
    /// When its agent was last heard of.
    heard: Option<OffsetDateTime>,
}

impl Signs {
    /// Those of a record. An inspection is measured from its beginning (section 1.6): its agent says nothing before it
    /// says all.
    pub(crate) fn of(record: &Record) -> Self {
        let node = &record.node;
        match node.inspection_started_at {
            Some(moved) if node.provision_state.family() == Some(Family::Inspect) => {
                Self { moved, heard: None }
            }
            _ => Self { moved: node.provision_updated_at, heard: record.session.agent_last_heartbeat },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Verb;
    use farrier_conductor::model::{AgentSession, NewNode, Node, ProvisionState};
    use std::time::Duration;

    fn record(state: ProvisionState) -> Record {
        let mut node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
        node.provision_state = state;
        Record { node, session: AgentSession::default(), order: None, epoch: 0, lease_expires_at: None }
    }

    #[test]
    fn without_a_lease_every_state_has_a_deadline_or_an_operator_but_those_that_are_worked_on() {
        let settings = Settings::new("http://c");
        for state in ProvisionState::ALL {
            let attention = Attention::of(&record(*state), &settings);
            let until = OffsetDateTime::UNIX_EPOCH + settings.deploy_callback_timeout;
            let expected = match state.activity() {
                Activity::Work => Attention::Nobody,
                Activity::Wait => Attention::Agent { until },
                Activity::Rest | Activity::Hold | Activity::Failed => Attention::Operator,
            };
            assert_eq!(attention, expected, "{state}");
        }
    }

    #[test]
    fn a_lease_is_attention_in_every_state_and_an_order_at_rest_needs_one() {
        let settings = Settings::new("http://c");
        for state in ProvisionState::ALL {
            let mut record = record(*state);
            record.order = Some(PendingOrder::new(Verb::PowerOff, OffsetDateTime::UNIX_EPOCH));
            let is_waiting = state.activity() == Activity::Wait;
            assert_eq!(Attention::of(&record, &settings) == Attention::Nobody, !is_waiting, "{state}");
            record.node.reservation = Some("c1".into());
            record.lease_expires_at = Some(OffsetDateTime::UNIX_EPOCH);
            assert!(matches!(Attention::of(&record, &settings), Attention::Conductor { .. }), "{state}");
        }
    }

    /// Section 1.6: nodes in maintenance have no deadline.
    #[test]
    fn a_node_that_waits_in_maintenance_is_its_operators() {
        let mut record = record(ProvisionState::DeployWait);
        record.node.maintenance = true;
        assert_eq!(Attention::of(&record, &Settings::new("http://c")), Attention::Operator);
    }

    /// Section 1.6: zero disables a deadline.
    #[test]
    fn a_node_that_waits_without_a_deadline_is_its_operators() {
        let zero = Duration::ZERO;
        let settings = Settings {
            deploy_callback_timeout: zero,
            clean_callback_timeout: zero,
            service_callback_timeout: zero,
            rescue_callback_timeout: zero,
            inspect_wait_timeout: zero,
            ..Settings::new("http://c")
        };
        for state in ProvisionState::ALL.iter().filter(|state| state.activity() == Activity::Wait) {
            assert_eq!(Attention::of(&record(*state), &settings), Attention::Operator, "{state}");
        }
    }

    #[test]
    fn the_deadline_of_an_inspection_begins_with_it_and_does_not_move() {
        let settings = Settings { inspect_wait_timeout: Duration::from_secs(7), ..Settings::new("http://c") };
        let mut record = record(ProvisionState::InspectWait);
        let later = OffsetDateTime::UNIX_EPOCH + time::Duration::HOUR;
        record.node.inspection_started_at = Some(OffsetDateTime::UNIX_EPOCH);
        (record.node.provision_updated_at, record.session.agent_last_heartbeat) = (later, Some(later));
        let until = OffsetDateTime::UNIX_EPOCH + settings.inspect_wait_timeout;
        assert_eq!(Attention::of(&record, &settings), Attention::Agent { until });
    }

    #[test]
    fn a_heartbeat_moves_the_deadline() {
        let settings = Settings::new("http://c");
        let mut record = record(ProvisionState::DeployWait);
        let heard = OffsetDateTime::UNIX_EPOCH + time::Duration::HOUR;
        record.session.agent_last_heartbeat = Some(heard);
        let until = heard + settings.deploy_callback_timeout;
        assert_eq!(Attention::of(&record, &settings), Attention::Agent { until });
    }
}
