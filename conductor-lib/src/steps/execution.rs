//! Who runs a step (sections 3.8, 3.9 and 3.12).

use super::reserved;
use crate::agent_steps;
use crate::error::Error;
use crate::interfaces::DriverStep;
use crate::interfaces::deploy::DeployInterface;
use crate::interfaces::outcome::Outcome;
use crate::model::{Event, PlannedStep, StepKind};
use crate::plan::Reserved;
use crate::task::Task;
use serde_json::json;

/// How a step left off.
pub(super) enum LeftOff {
    /// It is done.
    Done,
    /// The operation waits, by this event.
    Waits(Event),
    /// The machine is to be rebooted.
    WantsReboot {
        /// Whether the step runs again then.
        runs_again: bool,
    },
}

/// Has a step executed by whoever runs it: the conductor, an interface, or the agent.
pub(super) async fn execute(
    task: &mut Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
    step: &PlannedStep,
) -> Result<LeftOff, Error> {
    if let Some(reserved) = Reserved::named(&step.step) {
        if task.is_switched_by_agent()?
            && let Some(left_off) = reserved::left_to_agent(task, kind, reserved)?
        {
            return Ok(left_off);
        }
        let waits = reserved::execute(task, kind, reserved, step).await?;
        return Ok(waits.map_or(LeftOff::Done, LeftOff::Waits));
    }
    task.hold().await?;
    let hardware = &task.services.hardware;
    let runs_itself = hardware.that_runs(&step.id(), kind, &task.node).filter(|_| !step.in_band);
    if let Some(interface) = runs_itself {
        return Ok(match interface.execute_step(kind, &task.node, step).await? {
            DriverStep::Done => LeftOff::Done,
            DriverStep::Polls => {
                task.node.plan_mut(kind).polling = true;
                LeftOff::Waits(Event::Wait)
            }
            DriverStep::WantsReboot { runs_again } => LeftOff::WantsReboot { runs_again },
        });
    }
    match kind {
        StepKind::Deploy => Ok(match deploy.execute(task, step).await? {
            Outcome::Done => LeftOff::Done,
            Outcome::Wait => LeftOff::Waits(Event::Wait),
        }),
        StepKind::Clean | StepKind::Service if step.in_band => {
            agent_steps::start(task, kind, step, &json!(step.args)).await?;
            Ok(LeftOff::Waits(Event::Wait))
        }
        StepKind::Clean | StepKind::Service => {
            Err(Error::invalid(step.id().to_string(), "the driver has no such step any more"))
        }
    }
}
