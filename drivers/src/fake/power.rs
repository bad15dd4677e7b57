//! Switches machines that are not there.

use super::machines::Machines;
use async_trait::async_trait;
use farrier_conductor::interfaces::{Interface, InterfaceError, PowerInterface};
use farrier_conductor::model::{Node, PowerState};

/// Takes every power action.
#[derive(Debug)]
pub(super) struct FakePower {
    machines: Machines,
}

impl FakePower {
    pub(super) fn new(machines: Machines) -> Self {
        Self { machines }
    }

    fn switch(&self, node: &Node, power: PowerState) -> Result<(), InterfaceError> {
        self.machines.update(node, |machine| machine.power = power);
        Ok(())
    }
}

impl Interface for FakePower {}

#[async_trait]
impl PowerInterface for FakePower {
    async fn power_state(&self, node: &Node) -> Result<PowerState, InterfaceError> {
        Ok(self.machines.of(node).power)
    }

    async fn power_on(&self, node: &Node) -> Result<(), InterfaceError> {
        self.switch(node, PowerState::On)
    }

    async fn power_off(&self, node: &Node) -> Result<(), InterfaceError> {
        self.switch(node, PowerState::Off)
    }

    fn supports_reset(&self, _node: &Node) -> bool {
        true
    }

    async fn reset(&self, node: &Node) -> Result<(), InterfaceError> {
        self.switch(node, PowerState::On)
    }

    fn supports_soft_power_off(&self, _node: &Node) -> bool {
        true
    }

    async fn soft_power_off(&self, node: &Node) -> Result<(), InterfaceError> {
        self.switch(node, PowerState::Off)
    }

    async fn forget(&self, node: &Node) -> Result<(), InterfaceError> {
        self.machines.forget(node);
        Ok(())
    }
}
