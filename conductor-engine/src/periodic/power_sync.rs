//! Keeps recorded power states true (section 12.4).
//!
//! BMCs err: what contradicts a record counts when the machine says it twice. A machine that cannot be read, or does
//! not follow, has its node put into maintenance after a few passes. A reading that a driver did not make counts neither way.

use crate::error::Error;
use crate::periodic::power_pass::{Doubt, PowerPass, Reading, unchanged};
use crate::records::PendingOrder;
use crate::services::Services;
use crate::store::{Filter, NodeColumn, Record, Selection};
use crate::workers::Workers;
use farrier_conductor::model::{Activity, Fault, PowerAction, PowerState, ProvisionState};
use farrier_conductor::settings::PowerSyncSettings;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use time::OffsetDateTime;
use uuid::Uuid;

/// Compares machines with their records, pass after pass.
pub(crate) struct PowerSync {
    services: Arc<Services>,
    workers: Arc<Workers>,
    /// Passes in a row in which a machine could not be read, or was driven.
    failures: HashMap<Uuid, u32>,
}

/// What is done about a machine that is not as recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// The record follows the machine.
    Follow(PowerState),
    /// The machine is driven to what is recorded.
    Drive(PowerAction),
    /// The node is its operator's.
    GiveUp,
}

/// Judges a machine that was read, twice where it contradicted its record, and that failed so often before: what is
/// done about it, and how often it has failed now.
fn judge(
    recorded: Option<PowerState>,
    read: Option<PowerState>,
    failures: u32,
    settings: &PowerSyncSettings,
) -> (Option<Act>, u32) {
    let (most, is_forced) = (settings.power_state_sync_max_retries, settings.force_power_state_during_sync);
    let drive = |action| match failures < most {
        true => (Some(Act::Drive(action)), failures + 1),
        false => (Some(Act::GiveUp), 0),
    };
    match (recorded, read) {
        (_, None) if failures + 1 < most => (None, failures + 1),
        (_, None) => (Some(Act::GiveUp), 0),
        (Some(recorded), Some(read)) if recorded == read => (None, 0),
        (Some(PowerState::On), Some(_)) if is_forced => drive(PowerAction::On),
        (Some(PowerState::Off), Some(_)) if is_forced => drive(PowerAction::Off),
        (_, Some(read)) => (Some(Act::Follow(read)), 0),
    }
}

/// Whether a node is compared with its machine: a worker that works on it, or watches over its wait, knows better.
fn is_compared(record: &Record, now: OffsetDateTime) -> bool {
    let Record { node, order, lease_expires_at, .. } = record;
    let is_reserved = node.reservation.is_some() && lease_expires_at.is_some_and(|until| until > now);
    is_left_alone(node.provision_state)
        && !node.maintenance
        && node.target_power_state.is_none()
        && order.is_none()
        && !is_reserved
}

/// Whether nobody else looks after the power of nodes in a state.
fn is_left_alone(state: ProvisionState) -> bool {
    match state.activity() {
        Activity::Work | Activity::Wait => false,
        Activity::Rest | Activity::Hold | Activity::Failed => {
            !matches!(state, ProvisionState::Enroll | ProvisionState::AdoptFailed)
        }
    }
}

/// The nodes that may be compared, as far as their columns say so.
fn left_alone() -> Selection {
    let states = ProvisionState::ALL.iter().copied().filter(|state| is_left_alone(*state));
    let states = states.map(|state| state.to_string()).collect();
    let maintenance = NodeColumn::named("maintenance").expect("it is a column");
    Selection::all(vec![
        Filter::IsOneOf(NodeColumn::PROVISION_STATE, states),
        Filter::Flag(maintenance, false),
    ])
}

/// Whether a node is compared with its machine, which has to say by itself whether it is on.
fn is_synchronised(record: &Record, services: &Services) -> bool {
    let power = services.hardware.power(&record.node);
    is_compared(record, services.now())
        && services.leads(&record.node)
        && power.map_or(true, |power| power.supports_power_sync(&record.node))
}

impl PowerSync {
    pub(crate) fn new(services: Arc<Services>, workers: Arc<Workers>) -> Self {
        Self { services, workers, failures: HashMap::new() }
    }

    /// Compares every machine with its record once. Those that could not be read the last time come last, and what is
    /// known of the others counts at once.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub(crate) async fn pass(&mut self) -> Result<(), Error> {
        let mut nodes = self.services.store.identities(&left_alone()).await?;
        self.forget_those_in_other_hands(&nodes);
        nodes.sort_by_key(|node| self.failures.contains_key(node));
        let mut pass = PowerPass::new(&self.services, nodes, is_synchronised, Doubt::Contradictions);
        while let Some(reading) = pass.next().await {
            // No node stops the others.
            if let Err(error) = self.conclude(&reading).await {
                tracing::error!(node = %reading.name, "the power state cannot be recorded: {error}");
            }
        }
        Ok(())
    }

    /// What failed is forgotten of a node that was deleted, or that an operation or an operator has.
    fn forget_those_in_other_hands(&mut self, nodes: &[Uuid]) {
        let known: HashSet<_> = nodes.iter().collect();
        self.failures.retain(|node, _| known.contains(node));
    }

    async fn conclude(&mut self, reading: &Reading) -> Result<(), Error> {
        if !reading.was_made() {
            return Ok(());
        }
        let before = self.failures.remove(&reading.node).unwrap_or_default();
        let read = reading.said.as_ref().ok().copied();
        let (act, failures) = judge(reading.recorded, read, before, &self.services.settings.power_sync);
        if failures > 0 {
            self.failures.insert(reading.node, failures);
        }
        let Some(act) = act else { return Ok(()) };
        let Some(mut task) = unchanged(&self.services, reading).await? else { return Ok(()) };
        match act {
            Act::Follow(state) => {
                tracing::info!(node = %task.node.label(), "the machine says {state:?}, which is recorded now");
                task.node.power_state = Some(state);
            }
            Act::Drive(action) => {
                tracing::warn!(node = %task.node.label(), "the machine is not as recorded; order: {action}");
                task.node.target_power_state = Some(action.target());
                *task.order_mut() = Some(PendingOrder::new(action.into(), self.services.now()));
                task.save().await?;
                self.workers.hand_over(task);
                return Ok(());
            }
            Act::GiveUp => {
                let reason = match &reading.said {
                    Ok(state) => format!(
                        "the machine does not follow its record: it says {:?} again and again",
                        state.as_str()
                    ),
                    Err(error) => format!("the power state of the machine cannot be read: {error}"),
                };
                tracing::error!(node = %task.node.label(), "maintenance begins: {reason}");
                task.node.power_state = read;
                task.node.maintenance = true;
                task.node.maintenance_reason = Some(reason);
                task.node.fault = Some(Fault::Power);
            }
        }
        task.finish().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Verb;
    use farrier_conductor::model::{AgentSession, NewNode, Node};

    const ON: Option<PowerState> = Some(PowerState::On);
    const OFF: Option<PowerState> = Some(PowerState::Off);

    #[test]
    fn a_machine_is_judged_by_its_record_and_by_how_often_it_failed() {
        use Act::{Drive, Follow, GiveUp};
        let (on, off) = (PowerState::On, PowerState::Off);
        for (recorded, read, failures, forced, followed) in [
            (ON, ON, 2, (None, 0), (None, 0)),
            (OFF, OFF, 0, (None, 0), (None, 0)),
            (None, ON, 0, (Some(Follow(on)), 0), (Some(Follow(on)), 0)),
            (None, OFF, 2, (Some(Follow(off)), 0), (Some(Follow(off)), 0)),
            (ON, OFF, 0, (Some(Drive(PowerAction::On)), 1), (Some(Follow(off)), 0)),
            (OFF, ON, 2, (Some(Drive(PowerAction::Off)), 3), (Some(Follow(on)), 0)),
            (OFF, ON, 3, (Some(GiveUp), 0), (Some(Follow(on)), 0)),
            (ON, None, 0, (None, 1), (None, 1)),
            (None, None, 1, (None, 2), (None, 2)),
            (ON, None, 2, (Some(GiveUp), 0), (Some(GiveUp), 0)),
        ] {
            for (force_power_state_during_sync, expected) in [(true, forced), (false, followed)] {
                let settings = PowerSyncSettings { force_power_state_during_sync, ..Default::default() };
                let judged = judge(recorded, read, failures, &settings);
                assert_eq!(judged, expected, "{recorded:?} {read:?} {failures} {settings:?}");
            }
        }
    }

    fn record(state: ProvisionState) -> Record {
        let mut node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
        node.provision_state = state;
        Record { node, session: AgentSession::default(), order: None, epoch: 0, lease_expires_at: None }
    }

    /// Section 12.4; an operation that works, or waits, looks after the power of its own machine.
    #[test]
    fn nodes_that_somebody_looks_after_are_not_compared() {
        let now = OffsetDateTime::UNIX_EPOCH;
        let compared = ProvisionState::ALL.iter().filter(|state| is_compared(&record(**state), now));
        let compared: Vec<_> = compared.map(|state| state.as_str()).collect();
        assert_eq!(
            compared,
            [
                "manageable",
                "available",
                "deploy hold",
                "deploy failed",
                "active",
                "error",
                "clean hold",
                "clean failed",
                "inspect failed",
                "rescue",
                "rescue failed",
                "unrescue failed",
                "service hold",
                "service failed"
            ]
        );
    }

    #[test]
    fn a_node_is_left_alone_for_each_of_four_reasons() {
        let now = OffsetDateTime::UNIX_EPOCH;
        let changed = |change: fn(&mut Record)| {
            let mut record = record(ProvisionState::Active);
            change(&mut record);
            is_compared(&record, now)
        };
        assert!(changed(|_| {}));
        assert!(!changed(|record| record.node.maintenance = true));
        assert!(!changed(|record| record.node.target_power_state = ON));
        assert!(!changed(
            |record| record.order = Some(PendingOrder::new(Verb::Reboot, record.node.created_at))
        ));
        let reserved = |record: &mut Record, seconds| {
            record.node.reservation = Some("c2".into());
            record.lease_expires_at = Some(record.node.created_at + time::Duration::seconds(seconds));
        };
        let mut leased = record(ProvisionState::Active);
        reserved(&mut leased, 1);
        assert!(!is_compared(&leased, now));
        reserved(&mut leased, 0);
        assert!(is_compared(&leased, now), "its lease has expired");
    }
}
