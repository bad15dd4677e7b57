//! One face for all managers of a machine (sections 4.2 and 9.1).

use crate::error::StepError;
use crate::manager::{DeviceFilter, HardwareManager, StepCall, StepDeclaration, Support};
use crate::reserved;
use farrier_protocol::step::{HardwareManagerVersions, Phase, StepDescription};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The managers that fit this machine, the best first.
pub struct HardwareManagers {
    managers: Vec<(Support, Box<dyn HardwareManager>)>,
}

impl HardwareManagers {
    /// Asks each manager how well it fits, keeps those that do, and has them ready themselves, the best first.
    /// Asked once per process (F31).
    pub fn load(managers: Vec<Box<dyn HardwareManager>>) -> Self {
        let mut fitting: Vec<_> = managers
            .into_iter()
            .map(|manager| (manager.evaluate(), manager))
            .filter(|(support, _)| *support > Support::None)
            .collect();
        // Stable: equals keep the order in which they were given.
        fitting.sort_by_key(|(support, _)| Reverse(*support));
        for (_, manager) in &fitting {
            manager.initialize();
        }
        Self { managers: fitting }
    }

    /// Versions by manager name.
    pub fn versions(&self) -> HardwareManagerVersions {
        self.managers
            .iter()
            .map(|(_, manager)| (manager.name().to_owned(), manager.version().to_owned()))
            .collect()
    }

    /// The steps of a phase by class name of their manager, each name once.
    ///
    /// # Errors
    ///
    /// [`StepError::Reserved`], or the fault of a manager: nothing is listed while it is unclear whose step a
    /// name would run.
    pub fn steps(&self, phase: Phase) -> Result<BTreeMap<String, Vec<StepDescription>>, StepError> {
        self.require_sound()?;
        let mut steps = BTreeMap::<String, Vec<_>>::new();
        for ranked in self.ranked(phase).into_values() {
            let Some((manager, step)) = ranked.into_values().next() else { continue };
            steps.entry(manager.class_name().to_owned()).or_default().extend(step.describe(phase));
        }
        Ok(steps)
    }

    /// Runs the step that a call names, in its phase: by the best manager that has it, or the next one
    /// where that cannot do it on this machine. Any other failure is final.
    ///
    /// # Errors
    ///
    /// [`StepError::Unknown`] when no manager has it in this phase, [`StepError::Incompatible`] when none
    /// that has it can do it, [`StepError::Reserved`], or what the step reports.
    pub fn execute(&self, call: &StepCall<'_>) -> Result<Value, StepError> {
        self.require_sound()?;
        let mut steps = self.ranked(call.phase);
        let Some(candidates) = steps.remove(call.step) else {
            let known = steps.keys().copied().collect::<Vec<_>>().join(", ");
            return Err(StepError::Unknown { phase: call.phase.name(), step: call.step.to_owned(), known });
        };
        let mut refusals = Vec::new();
        for (manager, step) in candidates.into_values() {
            match step.execute(call) {
                Err(StepError::Incompatible { reasons }) => {
                    tracing::info!(step = call.step, manager = manager.name(), "not done here: {reasons}");
                    refusals.push(reasons);
                }
                outcome => return outcome,
            }
        }
        Err(StepError::Incompatible { reasons: refusals.join("; ") })
    }

    /// What the managers think of devices, the best first.
    pub(crate) fn device_filters(&self) -> impl Iterator<Item = &dyn DeviceFilter> {
        self.managers.iter().filter_map(|(_, manager)| manager.device_filter())
    }

    /// Read when steps are listed and again when one runs (S06, S07).
    fn require_sound(&self) -> Result<(), StepError> {
        for (_, manager) in &self.managers {
            if let Some(fault) = manager.fault() {
                return Err(StepError::Failed(fault.clone()));
            }
            let Some(program) = manager.origin() else { continue };
            if let Some(step) = manager.steps().iter().find(|step| reserved::is_reserved(step.step)) {
                return Err(StepError::Reserved { program: program.to_owned(), step: step.step });
            }
        }
        Ok(())
    }

    /// For each step name of a phase the managers that have it, best first: best support, then highest
    /// priority, then first class name.
    fn ranked(&self, phase: Phase) -> BTreeMap<&'static str, Candidates<'_>> {
        let mut ranked = BTreeMap::<_, Candidates<'_>>::new();
        for (place, (support, manager)) in self.managers.iter().enumerate() {
            for step in manager.steps() {
                let Some(priority) = step.priority(phase) else { continue };
                let rank = (Reverse(*support), Reverse(priority), manager.class_name(), place);
                ranked.entry(step.step).or_default().insert(rank, (manager.as_ref(), step));
            }
        }
        ranked
    }
}

/// Support, priority, class name, and place among the loaded managers, so that no two are equal.
type Rank = (Reverse<Support>, Reverse<i64>, &'static str, usize);

/// The managers that have a step, by rank.
type Candidates<'a> = BTreeMap<Rank, (&'a dyn HardwareManager, &'static StepDeclaration)>;

#[cfg(test)]
mod tests;
