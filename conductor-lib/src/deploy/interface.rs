//! Deploy (section 5.1).

use crate::error::Error;
use crate::interfaces::base::{Interface, InterfaceError};
use crate::interfaces::boot::BootNeed;
use crate::interfaces::outcome::Outcome;
use crate::model::InterfaceKind::Deploy;
use crate::model::{Node, PlannedStep, StepKind};
use crate::plan::KnownStep;
use crate::task::Task;
use async_trait::async_trait;
use farrier_protocol::command::CommandResult;
use std::ops::RangeInclusive;

/// What a deployment does after a heartbeat of its agent, while a step of the deploy interface waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterHeartbeat {
    /// The conductor reads the agent's command list, and begins the next step when the current one has ended.
    JudgesStep,
    /// The step continues, and waits for the next heartbeat.
    Waits,
    /// The step has ended; the next one begins.
    Done,
}

/// One way to put an instance onto a machine: the methods of contract 5.1, each of which is called where Ironic calls it.
///
/// A deployment is a list of steps: those of the interface, those of the agent, and what operators ask for. An interface
/// whose deployments run in an agent implements [`AgentDeploy`](super::AgentDeploy) and has all of these methods by that.
/// Any other implements this trait; a method that it lacks is *unsupported*, and never done.
///
/// Methods are called under the node's lease. Each may be called again after a conductor stopped in the middle of it.
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

    /// The interfaces of which each deployment has one instead of this one, the best one first (section 5.9). An
    /// interface that deploys itself has none.
    fn candidates(&self) -> &[String] {
        &[]
    }

    /// Whether it deploys what the instance of a node is, according to `instance_info`: so it is chosen among
    /// [candidates](Self::candidates).
    fn supports_deploy(&self, _node: &Node) -> bool {
        false
    }

    /// Priorities at which the agent is there, so that steps of its own have a place. The empty range says that there is
    /// no agent in any deployment.
    fn in_band(&self) -> RangeInclusive<i64> {
        RangeInclusive::new(1, 0)
    }

    /// Whether an agent ever runs on its machines. Where none does, cleaning and service are steps of interfaces alone, and
    /// are neither prepared nor torn down by this interface.
    fn runs_agents(&self) -> bool {
        false
    }

    /// Prepares the machine: before the first step of a deployment or rebuild, before an adoption, and before an unrescue.
    ///
    /// # Errors
    ///
    /// What fails the operation.
    async fn prepare(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(InterfaceError::unsupported(Deploy, "prepare")?)
    }

    /// Runs one step of a deployment, of its own or of the agent.
    ///
    /// # Errors
    ///
    /// [`AgentError::Busy`](crate::agent::AgentError::Busy) when it must run again later; anything else fails the
    /// deployment.
    async fn execute(&self, _task: &mut Task, _step: &PlannedStep) -> Result<Outcome, Error> {
        Ok(InterfaceError::unsupported(Deploy, "execute")?)
    }

    /// Decides what a deployment does after a heartbeat, while a step of this interface waits.
    ///
    /// # Errors
    ///
    /// [`AgentError::Unreachable`](crate::agent::AgentError::Unreachable) and
    /// [`AgentError::Busy`](crate::agent::AgentError::Busy) when it must wait for the next heartbeat; anything else fails the
    /// deployment.
    async fn heartbeat(&self, _task: &mut Task) -> Result<AfterHeartbeat, Error> {
        Ok(InterfaceError::unsupported(Deploy, "heartbeat")?)
    }

    /// Powers the machine off and disconnects it, when its instance is removed.
    ///
    /// # Errors
    ///
    /// What fails the removal.
    async fn tear_down(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(InterfaceError::unsupported(Deploy, "tear_down")?)
    }

    /// Undoes [`Self::prepare`]: when an instance is removed, after [`Self::tear_down`], and when a deployment has failed or
    /// was aborted.
    ///
    /// # Errors
    ///
    /// What fails the removal, or is added to the error of the deployment.
    async fn clean_up(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(InterfaceError::unsupported(Deploy, "clean_up")?)
    }

    /// Takes over a machine that runs its instance, after [`Self::prepare`] and without touching its power.
    ///
    /// # Errors
    ///
    /// What fails the adoption.
    async fn take_over(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(InterfaceError::unsupported(Deploy, "take_over")?)
    }

    /// Has an agent run for a cleaning, and returns whether its heartbeat must be awaited. Not called for a cleaning without
    /// the ramdisk.
    ///
    /// # Errors
    ///
    /// What fails the cleaning.
    async fn prepare_cleaning(&self, _task: &mut Task) -> Result<Outcome, Error> {
        Ok(InterfaceError::unsupported(Deploy, "prepare_cleaning")?)
    }

    /// Undoes [`Self::prepare_cleaning`] when a cleaning has ended, has failed or was aborted. After a failure the conductor
    /// powers the machine off, or leaves it on, as its settings say.
    ///
    /// # Errors
    ///
    /// What fails the cleaning, or is added to its error.
    async fn tear_down_cleaning(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(InterfaceError::unsupported(Deploy, "tear_down_cleaning")?)
    }

    /// Has an agent run for a service, and returns whether its heartbeat must be awaited. Not called for a service without the
    /// ramdisk.
    ///
    /// # Errors
    ///
    /// What fails the service.
    async fn prepare_service(&self, _task: &mut Task) -> Result<Outcome, Error> {
        Ok(InterfaceError::unsupported(Deploy, "prepare_service")?)
    }

    /// Undoes [`Self::prepare_service`] and starts the instance, when a service has ended or was aborted. A service that has
    /// failed keeps its agent, until it is retried or aborted.
    ///
    /// # Errors
    ///
    /// What fails the service.
    async fn tear_down_service(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(InterfaceError::unsupported(Deploy, "tear_down_service")?)
    }

    /// Takes note of what a step that ran in the agent produced.
    fn note_result(&self, _task: &mut Task, _step: &PlannedStep, _result: &CommandResult) {}
}
