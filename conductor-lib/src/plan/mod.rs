//! Which steps an operation takes, and in which order (sections 3.1 to 3.4). Nothing here knows a node or an agent.

mod fault;
mod known;
mod order;
mod request;
mod reserved;

pub use fault::StepFault;
pub use known::{KnownStep, ParseOverrideError, PriorityOverride, StepPolicies, StepPolicy, known};
pub use order::sort;
pub use request::{requested, requested_by_runbook};
pub use reserved::Reserved;

use crate::model::{PlannedStep, RequestedStep, StepId, StepKind};
use std::borrow::Cow;

/// What an operation takes its steps from.
#[derive(Debug)]
pub struct Offer<'a> {
    /// What the operation is.
    pub kind: StepKind,
    /// The steps of the node.
    pub known: &'a [KnownStep],
    /// What the operator of this conductor decided about steps.
    pub policy: &'a StepPolicy,
    /// Whether the ramdisk runs, or is going to.
    pub has_ramdisk: bool,
}

/// What to do with steps that the node does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// They are a fault: all steps are known by now.
    Refused,
    /// They are left out: the agent, which may have them, does not run yet.
    LeftOut,
}

impl Offer<'_> {
    /// The steps that run by themselves, in their order: those with a priority above zero.
    pub fn automatic(&self) -> Vec<PlannedStep> {
        let enabled =
            self.known.iter().filter(|step| step.priority > 0 && !self.policy.disallowed.contains(&step.id));
        let mut steps: Vec<_> = enabled.map(|step| planned(step, step.priority)).collect();
        self.sort(&mut steps);
        steps
    }

    /// Exactly the steps that an operator asks for, in the order given: manual cleaning and service.
    ///
    /// # Errors
    ///
    /// All that is wrong with them.
    pub fn by_hand(
        &self,
        requested: &[RequestedStep],
        missing: Missing,
    ) -> Result<Vec<PlannedStep>, Vec<StepFault>> {
        let resolved = self.resolve(requested, missing)?;
        Ok(resolved.iter().map(|(asked, step)| with_arguments(asked, step, step.priority)).collect())
    }

    /// The steps of a deployment: those that run by themselves, overlaid with those that are asked for. A step that is
    /// asked for with priority 0 is disabled; `core` names those that can be disabled and not moved.
    ///
    /// # Errors
    ///
    /// All that is wrong with the steps that are asked for.
    pub fn overlaid(
        &self,
        requested: &[RequestedStep],
        core: &StepId,
        missing: Missing,
    ) -> Result<Vec<PlannedStep>, Vec<StepFault>> {
        let resolved = self.resolve(requested, missing)?;
        let moved = resolved.iter().filter(|(asked, step)| {
            step.id == *core && !asked.priority.is_none_or(|priority| [0, step.priority].contains(&priority))
        });
        let moved: Vec<_> = moved
            .map(|(_, step)| StepFault::CorePriority { id: step.id.clone(), priority: step.priority })
            .collect();
        if !moved.is_empty() {
            return Err(moved);
        }
        let mut steps = self.automatic();
        steps.retain(|step| resolved.iter().all(|(asked, _)| !is(step, &asked.id)));
        steps.extend(resolved.iter().filter_map(|(asked, step)| {
            let priority = asked.priority.unwrap_or(step.priority);
            (priority > 0).then(|| with_arguments(asked, step, priority))
        }));
        self.sort(&mut steps);
        Ok(steps)
    }

    fn sort(&self, steps: &mut [PlannedStep]) {
        sort(self.kind, steps, |step| (step.priority, &step.interface));
    }

    /// What is asked for, each with the step that it means.
    fn resolve<'a>(
        &'a self,
        requested: &'a [RequestedStep],
        missing: Missing,
    ) -> Result<Vec<(&'a RequestedStep, Cow<'a, KnownStep>)>, Vec<StepFault>> {
        let mut faults = Vec::new();
        let mut resolved: Vec<(&RequestedStep, Cow<KnownStep>)> = Vec::new();
        for asked in requested {
            match self.meant(asked) {
                Some(_) if self.policy.disallowed.contains(&asked.id) => {
                    faults.push(StepFault::Disallowed(asked.id.clone()));
                }
                // Cleaning by hand may take a step twice, with other arguments each time.
                Some(_)
                    if self.kind == StepKind::Deploy
                        && resolved.iter().any(|(other, _)| other.id == asked.id) =>
                {
                    faults.push(StepFault::Duplicate(asked.id.clone()));
                }
                Some(step) => {
                    faults.extend(self.faults(asked, &step));
                    resolved.push((asked, step));
                }
                None if missing == Missing::LeftOut => {}
                None => {
                    let known = self.known.iter().map(|step| step.id.to_string()).collect();
                    faults.push(StepFault::Unknown { id: asked.id.clone(), known });
                }
            }
        }
        if faults.is_empty() { Ok(resolved) } else { Err(faults) }
    }

    /// The step that is meant, as far as it is known.
    fn meant(&self, asked: &RequestedStep) -> Option<Cow<'_, KnownStep>> {
        match Reserved::named(&asked.id.step) {
            Some(reserved) => Some(Cow::Owned(reserved.known(self.kind, &asked.id, &asked.args))),
            None => self.known.iter().find(|step| step.id == asked.id).map(Cow::Borrowed),
        }
    }

    fn faults(&self, asked: &RequestedStep, step: &KnownStep) -> Vec<StepFault> {
        let id = || step.id.clone();
        let known: Vec<_> = step.arguments.keys().cloned().collect();
        let unexpected = asked.args.keys().filter(|name| !step.arguments.contains_key(*name)).map(|name| {
            StepFault::UnexpectedArgument { id: id(), argument: name.clone(), known: known.clone() }
        });
        // A step that is disabled needs nothing.
        let is_wanted = asked.priority != Some(0);
        let needed = step
            .arguments
            .iter()
            .filter(|(name, info)| is_wanted && info.required && !asked.args.contains_key(*name));
        let missing = needed.map(|(name, info)| StepFault::MissingArgument {
            id: id(),
            argument: name.clone(),
            description: info.description.clone(),
        });
        let ramdisk = (step.requires_ramdisk && !self.has_ramdisk).then(|| StepFault::NeedsRamdisk(id()));
        let unusable = Reserved::named(&step.id.step).and_then(|reserved| reserved.fault(&asked.args));
        let unusable = unusable.map(|reason| StepFault::Unusable { id: id(), reason });
        unexpected.chain(missing).chain(ramdisk).chain(unusable).collect()
    }
}

/// The place of the current step in a new plan (section 3.4).
pub fn place_of(current: &PlannedStep, plan: &[PlannedStep]) -> Option<usize> {
    plan.iter().position(|step| step.interface == current.interface && step.step == current.step)
}

fn is(step: &PlannedStep, id: &StepId) -> bool {
    step.interface == id.interface && step.step == id.step
}

fn planned(step: &KnownStep, priority: i64) -> PlannedStep {
    PlannedStep {
        abortable: step.is_abortable,
        requires_ramdisk: step.requires_ramdisk,
        in_band: step.in_band,
        reboot_requested: step.reboot_requested,
        ..PlannedStep::new(&step.id.interface, &step.id.step, priority)
    }
}

fn with_arguments(asked: &RequestedStep, step: &KnownStep, priority: i64) -> PlannedStep {
    PlannedStep { args: asked.args.clone(), ..planned(step, priority) }
}

#[cfg(test)]
mod tests;
