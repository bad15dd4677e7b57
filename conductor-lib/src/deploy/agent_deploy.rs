//! Deploy interfaces on whose machines agents run: what all of them do alike.

use super::agent_base;
use super::interface::{AfterHeartbeat, DeployInterface};
use super::{agent_operation, instance};
use crate::error::Error;
use crate::interfaces::base::Interface;
use crate::interfaces::boot::BootNeed;
use crate::interfaces::outcome::Outcome;
use crate::model::{Node, PlannedStep};
use crate::plan::KnownStep;
use crate::task::Task;
use async_trait::async_trait;
use farrier_protocol::command::CommandResult;
use std::ops::RangeInclusive;

/// A deploy interface on whose machines agents run: for deployments, or at least for cleaning and service. Each
/// implementation has the whole [`DeployInterface`], as Ironic's agent deploys share it.
///
/// ```
/// use async_trait::async_trait;
/// use farrier_conductor::deploy::{AgentDeploy, agent_base};
/// use farrier_conductor::interfaces::{Interface, Outcome};
/// use farrier_conductor::model::PlannedStep;
/// use farrier_conductor::{Error, EventKind, Task};
///
/// /// Deploys by steps of the agent alone, and reports when the first one begins.
/// struct Reported;
///
/// impl Interface for Reported {}
///
/// #[async_trait]
/// impl AgentDeploy for Reported {
///     async fn execute(&self, task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error> {
///         if step.in_band {
///             task.emit_once(EventKind::WriteStarted);
///         }
///         agent_base::execute(task, step).await
///     }
/// }
/// ```
#[async_trait]
pub trait AgentDeploy: Interface {
    /// What it needs of the boot interface beside it.
    fn boot_need(&self) -> BootNeed {
        BootNeed::Any
    }

    /// The steps that it has itself.
    fn core_steps(&self) -> Vec<KnownStep> {
        agent_base::core_steps()
    }

    /// The interfaces of which each deployment has one instead of this one, the best one first.
    fn candidates(&self) -> &[String] {
        &[]
    }

    /// Whether it deploys what the instance of a node is.
    fn supports_deploy(&self, _node: &Node) -> bool {
        false
    }

    /// Priorities at which the agent is there, so that steps of its own have a place. The empty range says that there is
    /// no agent in any deployment.
    fn in_band(&self) -> RangeInclusive<i64> {
        41..=99
    }

    /// Runs one step of a deployment, of its own or of the agent.
    ///
    /// # Errors
    ///
    /// As [`DeployInterface::execute`].
    async fn execute(&self, task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error> {
        agent_base::execute(task, step).await
    }

    /// Decides what a deployment does after a heartbeat, while a step of this interface waits. An interface that does
    /// everything in one step decides by itself.
    ///
    /// # Errors
    ///
    /// As [`DeployInterface::heartbeat`].
    async fn heartbeat(&self, _task: &mut Task) -> Result<AfterHeartbeat, Error> {
        Ok(AfterHeartbeat::JudgesStep)
    }

    /// Takes note of what a step that ran in the agent produced.
    fn note_result(&self, _task: &mut Task, _step: &PlannedStep, _result: &CommandResult) {}
}

#[async_trait]
impl<T: AgentDeploy> DeployInterface for T {
    fn boot_need(&self) -> BootNeed {
        AgentDeploy::boot_need(self)
    }

    fn core_steps(&self) -> Vec<KnownStep> {
        AgentDeploy::core_steps(self)
    }

    fn candidates(&self) -> &[String] {
        AgentDeploy::candidates(self)
    }

    fn supports_deploy(&self, node: &Node) -> bool {
        AgentDeploy::supports_deploy(self, node)
    }

    fn in_band(&self) -> RangeInclusive<i64> {
        AgentDeploy::in_band(self)
    }

    fn runs_agents(&self) -> bool {
        true
    }

    async fn prepare(&self, task: &mut Task) -> Result<(), Error> {
        match AgentDeploy::boot_need(self) {
            BootNeed::Nothing => Ok(()),
            BootNeed::Any | BootNeed::Capability(_) => instance::prepare(task).await,
        }
    }

    async fn execute(&self, task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error> {
        AgentDeploy::execute(self, task, step).await
    }

    async fn heartbeat(&self, task: &mut Task) -> Result<AfterHeartbeat, Error> {
        AgentDeploy::heartbeat(self, task).await
    }

    async fn tear_down(&self, task: &mut Task) -> Result<(), Error> {
        instance::tear_down(task).await
    }

    async fn clean_up(&self, task: &mut Task) -> Result<(), Error> {
        instance::clean_up(task).await
    }

    /// A machine that is prepared starts its instance with any conductor.
    async fn take_over(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(())
    }

    async fn prepare_cleaning(&self, task: &mut Task) -> Result<Outcome, Error> {
        agent_operation::prepare_cleaning(task).await
    }

    async fn tear_down_cleaning(&self, task: &mut Task) -> Result<(), Error> {
        agent_operation::tear_down_cleaning(task).await
    }

    async fn prepare_service(&self, task: &mut Task) -> Result<Outcome, Error> {
        agent_operation::prepare_service(task).await
    }

    async fn tear_down_service(&self, task: &mut Task) -> Result<(), Error> {
        agent_operation::tear_down_service(task).await
    }

    fn note_result(&self, task: &mut Task, step: &PlannedStep, result: &CommandResult) {
        AgentDeploy::note_result(self, task, step, result);
    }
}
