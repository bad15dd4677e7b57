//! The custom agent: what is written, steps of the agent decide that operators or templates ask for, or that its
//! hardware managers run by themselves (section 5.8).

use super::agent_base::{self, CoreStep};
use crate::deploy::AgentDeploy;
use crate::error::Error;
use crate::interfaces::base::Interface;
use crate::interfaces::outcome::Outcome;
use crate::model::{Node, PlannedStep, StepKind};
use crate::task::Task;
use async_trait::async_trait;

/// Steps of the agent write the disks; the conductor writes no image, and asks for no boot loader.
#[derive(Debug, Clone, Copy, Default)]
pub struct CustomAgent;

impl Interface for CustomAgent {}

#[async_trait]
impl AgentDeploy for CustomAgent {
    async fn execute(&self, task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error> {
        if CoreStep::of(step) == Some(CoreStep::PrepareInstanceBoot) {
            check_writes(&task.node)?;
        }
        agent_base::execute(task, step).await
    }
}

/// Refuses to call a machine deployed on whose disks nothing was done.
fn check_writes(node: &Node) -> Result<(), Error> {
    match node.plan(StepKind::Deploy).steps.iter().any(|step| step.in_band) {
        true => Ok(()),
        false => Err(Error::invalid(
            "deploy_steps",
            "no step of the agent is among them, so nothing was written; ask for one, by deploy_steps or a deploy template",
        )),
    }
}
