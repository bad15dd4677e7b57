//! What agents do for the power of their machines.

use async_trait::async_trait;
use farrier_conductor::PowerAction;
use farrier_conductor::agent::{AgentClient, AgentError, Wait};
use farrier_conductor::interfaces::Agents;
use farrier_conductor::interfaces::{InBandPower, Interface, InterfaceError, PowerInterface, Properties};
use farrier_conductor::model::{InterfaceKind, Node, PowerState};
use serde_json::json;
use std::sync::Arc;

/// The order to reboot. Its name comes from the image that runs next.
const REBOOT: &str = "standby.run_image";

/// Has agents reboot their machines.
#[derive(Clone)]
pub struct AgentPower {
    agents: Arc<dyn Agents>,
}

impl AgentPower {
    /// By these agents.
    pub fn new(agents: Arc<dyn Agents>) -> Self {
        Self { agents }
    }

    async fn check_alive(&self, node: &Node) -> Result<(), InterfaceError> {
        if self.agents.is_alive(node).await? {
            return Ok(());
        }
        let (node, window) = (node.label(), self.agents.window().as_secs());
        Err(unusable(format!(
            "the agent of node {node} was silent for {window} s, so its conductor has no control over the power of \
             the machine; start its ramdisk by hand, or choose another power_interface"
        )))
    }
}

#[async_trait]
impl Interface for AgentPower {
    fn get_properties(&self) -> Properties {
        &[("fast_track", "true: the agent stays between operations; without it, the conductor's setting")]
    }

    /// Beside what the record says, the agent must be there: nothing else would begin an operation.
    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        let has_fast_track = self.agents.has_fast_track(node);
        match has_fast_track.map_err(|error| InterfaceError::driver_info(&error.key, error.reason))? {
            true => self.check_alive(node).await,
            false => Err(unusable(format!(
                "agent needs an agent that stays, and fast track is off for node {}; set its driver_info \
                 fast_track=true, or the conductor's --fast-track true",
                node.label()
            ))),
        }
    }
}

#[async_trait]
impl PowerInterface for AgentPower {
    /// A machine whose agent is alive is on; the state of any other is unknown.
    async fn power_state(&self, node: &Node) -> Result<PowerState, InterfaceError> {
        self.check_alive(node).await.map(|()| PowerState::On)
    }

    async fn power_on(&self, _node: &Node) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(InterfaceKind::Power, PowerAction::On.as_str())
    }

    async fn power_off(&self, _node: &Node) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(InterfaceKind::Power, PowerAction::Off.as_str())
    }

    /// That an agent is gone says nothing about the power of its machine.
    fn supports_power_sync(&self, _node: &Node) -> bool {
        false
    }

    fn in_band(&self) -> Option<&dyn InBandPower> {
        Some(self)
    }
}

#[async_trait]
impl InBandPower for AgentPower {
    async fn order_reboot(&self, agent: &AgentClient) -> Result<(), AgentError> {
        agent.execute(REBOOT, json!({}), Wait::UntilAccepted).await.map(drop)
    }
}

fn unusable(reason: String) -> InterfaceError {
    InterfaceError::invalid("power_interface", reason)
}
