//! The power interface `manual`: orders are for an operator, and count as carried out at once. Where they were not,
//! no agent calls, and the deadline of the operation decides.

use super::pending_actions::PendingActions;
use async_trait::async_trait;
use farrier_conductor::interfaces::{HandWork, Interface, InterfaceError, PowerInterface};
use farrier_conductor::model::{Activity, Node, PowerState};

/// The power state is unknown.
#[derive(Debug, thiserror::Error)]
#[error("an operator must {0}; report the new power state with `farrier node power NODE on` or `off`")]
struct NotKnown(String);

/// Has operators switch machines.
#[derive(Debug)]
pub(super) struct ManualPower {
    pending_actions: PendingActions,
}

impl ManualPower {
    /// Adds to these pending actions.
    pub(super) fn new(pending_actions: PendingActions) -> Self {
        Self { pending_actions }
    }

    /// For a node at rest the order reports the action of the operator.
    fn take(&self, node: &Node, power: PowerState) -> Result<(), InterfaceError> {
        let is_report = node.provision_state.activity() == Activity::Rest;
        Ok(self.pending_actions.change(node, |action| action.power = (!is_report).then_some(power))?)
    }
}

impl Interface for ManualPower {}

#[async_trait]
impl PowerInterface for ManualPower {
    async fn power_state(&self, node: &Node) -> Result<PowerState, InterfaceError> {
        let is_at_rest = node.provision_state.activity() == Activity::Rest;
        match self.pending_actions.of(node.uuid).instruction().filter(|_| is_at_rest) {
            Some(instruction) => Err(InterfaceError::driver(NotKnown(instruction))),
            None => Ok(node.power_state.unwrap_or(PowerState::Off)),
        }
    }

    async fn power_on(&self, node: &Node) -> Result<(), InterfaceError> {
        self.take(node, PowerState::On)
    }

    async fn power_off(&self, node: &Node) -> Result<(), InterfaceError> {
        self.take(node, PowerState::Off)
    }

    fn supports_reset(&self, _node: &Node) -> bool {
        true
    }

    async fn reset(&self, node: &Node) -> Result<(), InterfaceError> {
        self.take(node, PowerState::On)
    }

    fn supports_power_sync(&self, _node: &Node) -> bool {
        false
    }

    fn hand_work(&self, node: &Node) -> Option<HandWork> {
        self.pending_actions.hand_work(node.uuid)
    }

    async fn forget(&self, node: &Node) -> Result<(), InterfaceError> {
        Ok(self.pending_actions.forget(node.uuid)?)
    }
}
