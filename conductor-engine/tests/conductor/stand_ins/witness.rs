//! Machines that see which conductor acts on them, and whether two do at once.

use async_trait::async_trait;
use farrier_conductor::interfaces::{DriverStep, Interface, InterfaceError, PowerInterface, Properties};
use farrier_conductor::model::{Node, PlannedStep, PowerState, StepKind};
use farrier_conductor::plan::KnownStep;
use farrier_conductor::{Drivers, HardwareType};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;

/// How long an act on a machine takes.
const ACT: Duration = Duration::from_millis(5);

/// What the machines of all nodes have seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// The conductors that acted on each node.
    pub actors: BTreeMap<Uuid, BTreeSet<String>>,
    /// Acts of one conductor while another one's was under way.
    pub clashes: Vec<String>,
    /// The nodes whose steps began, in their order.
    pub begun: Vec<String>,
    /// Steps that run and are not to end yet.
    pub holds_steps: bool,
    /// Whether the driver was told to end.
    pub has_shut_down: bool,
    busy: BTreeMap<Uuid, String>,
    power: BTreeMap<Uuid, PowerState>,
}

/// The machines as a conductor controls them.
#[derive(Clone)]
pub struct Witness {
    pub seen: Arc<Mutex<Seen>>,
    conductor: String,
}

/// An act on a machine, until it ends or is given up.
struct Act {
    seen: Arc<Mutex<Seen>>,
    node: Uuid,
}

impl Drop for Act {
    fn drop(&mut self) {
        self.seen.lock().unwrap().busy.remove(&self.node);
    }
}

impl Witness {
    pub fn new(seen: &Arc<Mutex<Seen>>, conductor: &str) -> Self {
        Self { seen: Arc::clone(seen), conductor: conductor.to_owned() }
    }

    /// Drivers with these hardware types.
    pub fn drivers(&self, hardware_types: &[&'static str]) -> Drivers {
        let drivers = Drivers::default().power("witness", self.clone());
        hardware_types.iter().fold(drivers, |drivers, name| {
            let hardware_type =
                HardwareType::new(*name).power(["witness"]).deploy(["custom-agent", "direct"]);
            drivers.hardware_type(hardware_type.boot(["fake"]))
        })
    }

    fn act(&self, node: &Node) -> Act {
        let mut seen = self.seen.lock().unwrap();
        seen.actors.entry(node.uuid).or_default().insert(self.conductor.clone());
        if let Some(other) = seen.busy.insert(node.uuid, self.conductor.clone()) {
            let clash = format!("{}: {} while {other}", node.label(), self.conductor);
            seen.clashes.push(clash);
        }
        Act { seen: Arc::clone(&self.seen), node: node.uuid }
    }

    async fn set_power(&self, node: &Node, power: PowerState) {
        let _act = self.act(node);
        tokio::time::sleep(ACT).await;
        self.seen.lock().unwrap().power.insert(node.uuid, power);
    }
}

#[async_trait]
impl Interface for Witness {
    fn get_properties(&self) -> Properties {
        &[]
    }

    async fn validate(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    fn steps(&self, kind: StepKind, _node: &Node) -> Vec<KnownStep> {
        let known = |step| KnownStep { requires_ramdisk: false, ..KnownStep::new(kind, "power", step, 0) };
        ["polled", "long"].map(known).into()
    }

    async fn execute_step(
        &self,
        _kind: StepKind,
        node: &Node,
        step: &PlannedStep,
    ) -> Result<DriverStep, InterfaceError> {
        let _act = self.act(node);
        self.seen.lock().unwrap().begun.push(node.label());
        tokio::time::sleep(ACT).await;
        if step.step == "polled" {
            return Ok(DriverStep::Polls);
        }
        while self.seen.lock().unwrap().holds_steps {
            tokio::time::sleep(ACT).await;
        }
        Ok(DriverStep::Done)
    }

    async fn poll_step(
        &self,
        _kind: StepKind,
        _node: &Node,
        _step: &PlannedStep,
    ) -> Result<DriverStep, InterfaceError> {
        Ok(match self.seen.lock().unwrap().holds_steps {
            true => DriverStep::Polls,
            false => DriverStep::Done,
        })
    }
}

#[async_trait]
impl PowerInterface for Witness {
    async fn power_state(&self, node: &Node) -> Result<PowerState, InterfaceError> {
        Ok(self.seen.lock().unwrap().power.get(&node.uuid).copied().unwrap_or(PowerState::Off))
    }

    async fn power_on(&self, node: &Node) -> Result<(), InterfaceError> {
        self.set_power(node, PowerState::On).await;
        Ok(())
    }

    async fn power_off(&self, node: &Node) -> Result<(), InterfaceError> {
        self.set_power(node, PowerState::Off).await;
        Ok(())
    }

    async fn shut_down(&self) {
        self.seen.lock().unwrap().has_shut_down = true;
    }
}
