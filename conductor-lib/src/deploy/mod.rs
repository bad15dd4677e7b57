//! Deploy interfaces: what puts an image onto a machine.

pub(crate) mod direct;
pub mod image;
pub mod layout;

use crate::error::Error;
use crate::interfaces::base::Interface;
use crate::model::PlannedStep;
use crate::plan::KnownStep;
use crate::task::Task;
use async_trait::async_trait;
use farrier_protocol::command::CommandResult;
use std::ops::RangeInclusive;

/// How a step left off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The next step may run.
    Done,
    /// The agent calls when it can go on.
    Wait,
}

/// One way to deploy (contract 5).
#[async_trait]
pub(crate) trait DeployInterface: Interface {
    /// The steps that it has itself.
    fn core_steps(&self) -> Vec<KnownStep>;

    /// Priorities at which the agent is there, so that steps of its own have a place.
    fn in_band(&self) -> RangeInclusive<i64>;

    /// Runs one step of a deployment, of its own or of the agent.
    ///
    /// # Errors
    ///
    /// [`AgentError::Busy`](crate::agent_client::AgentError::Busy) when it is to run again later; anything else
    /// fails the deployment.
    async fn execute(&self, task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error>;

    /// Takes note of what a step that ran in the agent produced.
    fn note_result(&self, task: &mut Task, step: &PlannedStep, result: &CommandResult);
}
