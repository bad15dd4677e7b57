//! Who runs a step (sections 3.8, 3.9 and 3.12).

use super::outcome::StepOutcome;
use super::reserved;
use crate::deploy::DeployInterface;
use crate::error::Error;
use crate::interfaces::DriverStep;
use crate::interfaces::outcome::Outcome;
use crate::model::{Event, PlannedStep, StepKind};
use crate::plan::Reserved;
use crate::task::Task;
use crate::task::agent_steps;
use serde_json::json;

/// Has a step executed by what runs it: the conductor, an interface, or the agent.
pub(super) async fn execute(
    task: &mut Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
    step: &PlannedStep,
) -> Result<StepOutcome, Error> {
    if let Some(reserved) = Reserved::named(&step.step) {
        if task.is_switched_by_agent()?
            && let Some(outcome) = reserved::left_to_agent(task, kind, reserved)?
        {
            return Ok(outcome);
        }
        let waits = reserved::execute(task, kind, reserved, step).await?;
        return Ok(waits.map_or(StepOutcome::Done, StepOutcome::Waits));
    }
    let hardware = task.host.hardware();
    let runs_itself = hardware.that_runs(&step.id(), kind, &task.node).filter(|_| !step.in_band);
    if let Some((of, interface)) = runs_itself {
        let executes = interface.execute_step(kind, &task.node, step);
        return Ok(match task.act(of, "execute_step", executes).await? {
            DriverStep::Done => StepOutcome::Done,
            DriverStep::Polls => {
                task.node.plan_mut(kind).polling = true;
                StepOutcome::Waits(Event::Wait)
            }
            DriverStep::WantsReboot { runs_again } => StepOutcome::WantsReboot { runs_again },
        });
    }
    match kind {
        StepKind::Deploy => Ok(match deploy.execute(task, step).await? {
            Outcome::Done => StepOutcome::Done,
            Outcome::Wait => StepOutcome::Waits(Event::Wait),
        }),
        StepKind::Clean | StepKind::Service if step.in_band => {
            agent_steps::start(task, kind, step, &json!(step.args)).await?;
            Ok(StepOutcome::Waits(Event::Wait))
        }
        StepKind::Clean | StepKind::Service => {
            Err(Error::invalid(step.id().to_string(), "the driver has no such step any more"))
        }
    }
}
