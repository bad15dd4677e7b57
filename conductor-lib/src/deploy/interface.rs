//! Deploy (sections 2.9 and 5.1).

use crate::error::Error;
use crate::interfaces::base::{Interface, InterfaceError};
use crate::interfaces::boot::BootNeed;
use crate::interfaces::outcome::Outcome;
use crate::model::InterfaceKind::Deploy;
use crate::model::{Node, PlannedStep, StepKind};
use crate::plan::KnownStep;
use crate::task::Task;
use crate::task::{agent_steps, ramdisk};
use async_trait::async_trait;
use farrier_protocol::command::CommandResult;
use serde_json::json;
use std::ops::RangeInclusive;

/// One way to put an instance onto a machine.
///
/// A deployment is a list of steps: those of the interface, those of the agent, and what operators ask for. An
/// interface that writes nothing of its own boots the ramdisk by its one step, and the agent's steps do the rest.
///
/// An interface without decomposed steps does all in that one step, across heartbeats: the hooks
/// [`deploy_has_started`](Self::deploy_has_started), [`continue_deploy`](Self::continue_deploy),
/// [`deploy_is_done`](Self::deploy_is_done) and [`reboot_to_instance`](Self::reboot_to_instance) are called then.
#[async_trait]
pub trait DeployInterface: Interface {
    /// What it needs of the boot interface beside it.
    fn boot_need(&self) -> BootNeed {
        BootNeed::Any
    }

    /// The steps that it has itself.
    fn core_steps(&self) -> Vec<KnownStep> {
        vec![KnownStep::new(StepKind::Deploy, "deploy", "deploy", 100)]
    }

    /// The interfaces of which each deployment has one in the place of this one, the best one first (section 5.9). An
    /// interface that deploys itself has none.
    fn candidates(&self) -> &[String] {
        &[]
    }

    /// Whether it deploys what the instance of a node is, as far as `instance_info` tells: so it is chosen among
    /// [candidates](Self::candidates).
    fn supports_deploy(&self, _node: &Node) -> bool {
        false
    }

    /// Priorities at which the agent is there, so that steps of its own have a place. An empty range says that there is
    /// no agent in any deployment.
    fn in_band(&self) -> RangeInclusive<i64> {
        41..=99
    }

    /// Whether an agent ever runs on its machines. Where none does, cleaning and service are steps of interfaces alone.
    fn runs_agents(&self) -> bool {
        true
    }

    /// Runs one step of a deployment, of its own or of the agent. Those of the agent are sent to it; any other boots
    /// the ramdisk, unless an implementation knows better.
    ///
    /// # Errors
    ///
    /// [`AgentError::Busy`](crate::agent::AgentError::Busy) when it is to run again later; anything else
    /// fails the deployment.
    async fn execute(&self, task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error> {
        if step.in_band {
            agent_steps::start(task, StepKind::Deploy, step, &json!(step.args)).await?;
            return Ok(Outcome::Wait);
        }
        let outcome = ramdisk::run(task).await?;
        // Hooks are called by heartbeats alone, also where the agent has stayed.
        Ok(if self.has_decomposed_deploy_steps() { outcome } else { Outcome::Wait })
    }

    /// Takes over a machine that runs its instance already, without touching its power.
    ///
    /// # Errors
    ///
    /// What fails the adoption.
    async fn take_over(&self, task: &mut Task) -> Result<(), Error> {
        match self.boot_need() {
            BootNeed::Nothing => Ok(()),
            BootNeed::Any | BootNeed::Capability(_) => task.prepare_instance().await,
        }
    }

    /// Takes note of what a step that ran in the agent produced.
    fn note_result(&self, _task: &mut Task, _step: &PlannedStep, _result: &CommandResult) {}

    /// Whether a deployment consists of steps. If not, what follows is called by heartbeats while its one step,
    /// `deploy`, waits.
    fn has_decomposed_deploy_steps(&self) -> bool {
        true
    }

    /// Whether the agent has begun with the deployment.
    ///
    /// # Errors
    ///
    /// As [`Self::execute`].
    async fn deploy_has_started(&self, _task: &mut Task) -> Result<bool, Error> {
        Ok(InterfaceError::unsupported(Deploy, "deploy_has_started")?)
    }

    /// Has the agent, which has called for the first time, begin.
    ///
    /// # Errors
    ///
    /// As [`Self::execute`].
    async fn continue_deploy(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(InterfaceError::unsupported(Deploy, "continue_deploy")?)
    }

    /// Whether the agent has ended, be it well or not.
    ///
    /// # Errors
    ///
    /// As [`Self::execute`].
    async fn deploy_is_done(&self, _task: &mut Task) -> Result<bool, Error> {
        Ok(InterfaceError::unsupported(Deploy, "deploy_is_done")?)
    }

    /// Looks how the agent has ended, and starts the instance.
    ///
    /// # Errors
    ///
    /// What fails the deployment.
    async fn reboot_to_instance(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(InterfaceError::unsupported(Deploy, "reboot_to_instance")?)
    }
}
