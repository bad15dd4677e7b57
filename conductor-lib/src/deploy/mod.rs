//! Deploy interfaces: what puts an image onto a machine.

pub(crate) mod direct;
pub mod image;
pub mod layout;

use crate::error::Error;
use crate::interfaces::base::Interface;
use crate::model::{AgentSession, PlannedStep};
use crate::task::Task;
use async_trait::async_trait;
use farrier_protocol::command::CommandResult;

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
    /// The steps of a deployment, the first one first, with those that the agent offers.
    fn plan(&self, session: &AgentSession) -> Vec<PlannedStep>;

    /// Whether the agent executes this step, so that a fresh agent means that the step was cut off.
    fn runs_in_agent(&self, step: &PlannedStep) -> bool;

    /// Runs one step.
    ///
    /// # Errors
    ///
    /// [`AgentError::Busy`](crate::agent_client::AgentError::Busy) when it is to run again later; anything else
    /// fails the deployment.
    async fn execute(&self, task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error>;

    /// Takes note of what a step that ran in the agent produced.
    fn note_result(&self, task: &mut Task, step: &PlannedStep, result: &CommandResult);
}
