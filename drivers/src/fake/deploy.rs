//! Deploys nothing, in one step.

use async_trait::async_trait;
use farrier_conductor::deploy::{DeployInterface, instance};
use farrier_conductor::interfaces::{BootNeed, Interface, Outcome};
use farrier_conductor::model::{PlannedStep, StepKind};
use farrier_conductor::plan::KnownStep;
use farrier_conductor::{Error, Task};

/// The deployment is over when it begins.
#[derive(Debug)]
pub(super) struct FakeDeploy;

impl Interface for FakeDeploy {}

#[async_trait]
impl DeployInterface for FakeDeploy {
    fn boot_need(&self) -> BootNeed {
        BootNeed::Nothing
    }

    fn core_steps(&self) -> Vec<KnownStep> {
        let deploy = KnownStep::new(StepKind::Deploy, "deploy", "deploy", 100);
        vec![KnownStep { requires_ramdisk: false, ..deploy }]
    }

    async fn prepare(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(())
    }

    async fn execute(&self, _task: &mut Task, _step: &PlannedStep) -> Result<Outcome, Error> {
        Ok(Outcome::Done)
    }

    async fn tear_down(&self, task: &mut Task) -> Result<(), Error> {
        instance::tear_down(task).await
    }

    async fn clean_up(&self, task: &mut Task) -> Result<(), Error> {
        instance::clean_up(task).await
    }

    async fn take_over(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(())
    }
}
