//! Carries out the steps that every conductor has (section 3.9).

use super::outcome::StepOutcome;
use crate::error::Error;
use crate::model::{Event, PlannedStep, PowerAction, StepKind};
use crate::plan::Reserved;
use crate::task::Task;
use crate::task::ramdisk;
use std::time::Duration;

/// Carries one out. Gives the event by which the operation waits, where it does.
pub(super) async fn execute(
    task: &mut Task,
    kind: StepKind,
    reserved: Reserved,
    step: &PlannedStep,
) -> Result<Option<Event>, Error> {
    match reserved {
        Reserved::PowerOff => task.power_off().await?,
        Reserved::PowerOn | Reserved::Reboot if starts_ramdisk(task, kind) => ramdisk::boot(task).await?,
        Reserved::PowerOn => task.power_on().await?,
        Reserved::Reboot => task.reboot().await?,
        Reserved::Hold => return Ok(Some(Event::Hold)),
        Reserved::Wait => match Reserved::seconds(&step.args) {
            None => return Ok(Some(Event::Wait)),
            Some(seconds) => {
                let most = task.settings().max_conductor_wait_step;
                tokio::time::sleep(Duration::from_secs(seconds).min(most)).await;
            }
        },
    }
    Ok(None)
}

/// What becomes of one where only the agent can switch the machine, if that is another thing: a reboot is done when
/// the next agent calls, and the operation waits for it.
pub(super) fn left_to_agent(
    task: &Task,
    kind: StepKind,
    reserved: Reserved,
) -> Result<Option<StepOutcome>, Error> {
    match reserved {
        Reserved::PowerOn => task.check_power_action(PowerAction::On)?,
        Reserved::PowerOff => task.check_power_action(PowerAction::Off)?,
        Reserved::Reboot if starts_ramdisk(task, kind) => {
            return Ok(Some(StepOutcome::WantsReboot { runs_again: false }));
        }
        Reserved::Reboot | Reserved::Hold | Reserved::Wait => {}
    }
    Ok(None)
}

/// Whether the machine is to start the ramdisk, for what is to come: deployments have it while steps run in it.
fn starts_ramdisk(task: &Task, kind: StepKind) -> bool {
    let plan = task.node.plan(kind);
    match kind {
        StepKind::Clean | StepKind::Service => !plan.disable_ramdisk,
        StepKind::Deploy => plan.steps.iter().skip(plan.index.unwrap_or(0)).any(|step| step.in_band),
    }
}
