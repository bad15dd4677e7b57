//! A deploy interface of one's own, tested without a conductor: it has the instance boot from a volume, so that no image is
//! written and no agent runs.
//!
//! `cargo test -p farrier-conductor --features testing --example own_deploy`

use async_trait::async_trait;
use farrier_conductor::deploy::{AgentDeploy, DeployInterface};
use farrier_conductor::interfaces::{Interface, InterfaceError, Outcome};
use farrier_conductor::model::{Node, PlannedStep, StepKind};
use farrier_conductor::plan::KnownStep;
use farrier_conductor::testing::{FakeMachine, task};
use farrier_conductor::{Drivers, Error, EventKind, Task};
use std::ops::RangeInclusive;

/// Where the instance has the name of its volume.
const VOLUME: &str = "boot_volume";

/// Boots instances from volumes.
struct FromVolume;

/// The name of a node's volume.
fn volume(node: &Node) -> Result<&str, InterfaceError> {
    let named = node.instance_info.text(VOLUME).map_err(|bad| InterfaceError::invalid(VOLUME, bad.reason))?;
    named.ok_or_else(|| InterfaceError::invalid(VOLUME, "is missing; name the volume to boot from"))
}

#[async_trait]
impl Interface for FromVolume {
    /// Refuses an order that cannot end well, before the machine is touched.
    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        volume(node).map(drop)
    }
}

#[async_trait]
impl AgentDeploy for FromVolume {
    /// Two steps, the one with the higher priority first.
    fn core_steps(&self) -> Vec<KnownStep> {
        [("deploy", 100), ("boot_instance", 20)]
            .map(|(name, priority)| KnownStep::new(StepKind::Deploy, "deploy", name, priority))
            .into()
    }

    /// No agent runs in a deployment; cleaning and service have one.
    fn in_band(&self) -> RangeInclusive<i64> {
        RangeInclusive::new(1, 0)
    }

    async fn execute(&self, task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error> {
        match step.step.as_str() {
            "deploy" => {
                task.power_off().await?;
                task.attach_volumes().await?;
                task.prepare_instance().await?;
            }
            _ => {
                task.power_on().await?;
                task.emit(EventKind::Booting);
            }
        }
        Ok(Outcome::Done)
    }
}

/// Runs all steps of a deployment.
async fn deploy(task: &mut Task) -> Result<(), Error> {
    let interface: &dyn DeployInterface = &FromVolume;
    interface.validate(&task.node).await?;
    interface.prepare(task).await?;
    for step in interface.core_steps() {
        interface.execute(task, &PlannedStep::new("deploy", &step.id.step, step.priority)).await?;
        task.save().await?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let machine = FakeMachine::default();
    let mut task =
        task(machine.drivers(Drivers::default().deploy("from-volume", FromVolume), ["from-volume"]))?;
    task.node.instance_info.insert(VOLUME.into(), "v1".into());
    deploy(&mut task).await?;
    println!("the machine was told: {}", machine.told().join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_machine_boots_its_volume_and_nothing_is_done_to_one_without() -> Result<(), Error> {
        let machine = FakeMachine::default();
        let drivers = Drivers::default().deploy("from-volume", FromVolume);
        let mut task = task(machine.drivers(drivers, ["from-volume"]))?;
        let refused = deploy(&mut task).await.unwrap_err();
        assert!(refused.to_string().contains("name the volume"), "{refused}");
        assert!(machine.told().is_empty());
        task.node.instance_info.insert(VOLUME.into(), "v1".into());
        deploy(&mut task).await?;
        assert_eq!(machine.told(), ["power off", "boot instance", "power on"]);
        assert_eq!(task.host().events(), [EventKind::Booting]);
        DeployInterface::tear_down(&FromVolume, &mut task).await?;
        assert_eq!(machine.told().last().map(String::as_str), Some("power off"));
        task.host_mut().lost = Some("another conductor took the node".into());
        assert!(matches!(deploy(&mut task).await, Err(Error::Host(_))));
        Ok(())
    }
}
