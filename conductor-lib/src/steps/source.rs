//! Where the steps of an operation come from (section 3.4).

use crate::deploy::DeployInterface;
use crate::error::Error;
use crate::model::{PlannedStep, StepId, StepKind};
use crate::plan::{self, KnownStep, Missing, Offer, StepFault};
use crate::steps::raid;
use crate::task::Task;

/// The interface whose steps of the agent are there only where the node's RAID interface says so.
const RAID: &str = "raid";

/// Sees whether an operation can be, as far as its steps are known before the agent runs, and before the machine is
/// touched for it.
///
/// # Errors
///
/// [`Error::Invalid`] with all that is wrong with its steps, [`Error::Interface`] for one that its interface refuses.
pub(super) async fn verify(task: &Task, deploy: &dyn DeployInterface, kind: StepKind) -> Result<(), Error> {
    let plan = task.node.plan(kind);
    let faults: Vec<_> = plan.requested.iter().filter_map(|asked| raid::fault(&task.node, asked)).collect();
    if !faults.is_empty() {
        return Err(invalid(kind, &faults));
    }
    let missing = if plan.disable_ramdisk { Missing::Refused } else { Missing::LeftOut };
    steps(task, deploy, kind, missing)?;
    for asked in &plan.requested {
        if let Some((of, interface)) = task.host.hardware().that_runs(&asked.id, kind, &task.node) {
            let validates = interface.validate_step(&task.node, asked);
            task.ask(of, "validate_step", validates).await?;
        }
    }
    Ok(())
}

/// The steps of the operation that a node is in, the first one first.
///
/// # Errors
///
/// [`Error::Invalid`] with all that is wrong with the steps that were asked for.
pub(super) fn steps(
    task: &Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
    missing: Missing,
) -> Result<Vec<PlannedStep>, Error> {
    let node = &task.node;
    let policy = task.settings().steps.of(kind);
    let mut own = task.host.hardware().steps(kind, node);
    if kind == StepKind::Deploy {
        own.extend(deploy.core_steps());
    }
    let has_raid = task.host.hardware().raid(node).is_ok_and(|raid| raid.runs_steps_of_agent());
    let offered = task.session.cached_steps(kind).unwrap_or_default();
    let offered = offered.iter().filter(|step| has_raid || step.interface != RAID);
    let mut known = plan::known(kind, own, offered, policy);
    let is_there = |step: &KnownStep| !step.in_band || deploy.in_band().contains(&step.priority);
    if kind == StepKind::Deploy {
        known.iter_mut().filter(|step| !is_there(step)).for_each(|step| step.priority = 0);
    }
    let has_ramdisk = !node.plan(kind).disable_ramdisk;
    let offer = Offer { kind, known: &known, policy, has_ramdisk };
    let planned = match kind {
        StepKind::Clean if !node.is_cleaned_by_hand() => Ok(offer.automatic()),
        StepKind::Clean | StepKind::Service => offer.by_hand(&node.plan(kind).requested, missing),
        StepKind::Deploy => overlaid(task, deploy, &offer, missing),
    };
    planned.map_err(|faults| invalid(kind, &faults))
}

fn overlaid(
    task: &Task,
    deploy: &dyn DeployInterface,
    offer: &Offer<'_>,
    missing: Missing,
) -> Result<Vec<PlannedStep>, Vec<StepFault>> {
    let requested = &task.node.plan(StepKind::Deploy).requested;
    let steps = offer.overlaid(requested, &StepId::new("deploy", "deploy"), missing)?;
    let out_of_place = steps.iter().filter(|step| step.in_band && !deploy.in_band().contains(&step.priority));
    let faults: Vec<_> = out_of_place
        .map(|step| StepFault::NoAgent {
            id: step.id(),
            first: *deploy.in_band().end(),
            last: *deploy.in_band().start(),
        })
        .collect();
    if faults.is_empty() { Ok(steps) } else { Err(faults) }
}

/// What is wrong with steps, as one error.
pub fn invalid(kind: StepKind, faults: &[StepFault]) -> Error {
    let told: Vec<_> = faults.iter().map(ToString::to_string).collect();
    Error::invalid(format!("{kind}_steps"), told.join("; "))
}
