//! Options of `farrier serve` about cleaning.

use clap::{ArgAction, Args};
use farrier_conductor::Settings;
use farrier_conductor::plan::PriorityOverride;

/// Whether machines are cleaned, and by which steps.
#[derive(Debug, Args)]
pub(crate) struct Cleaning {
    /// Clean machines before they become available; `false` hands the data of one user to the next one.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    automated_clean: bool,
    /// Run a clean step with another priority, the highest first; 0 disables it: for example deploy.erase_devices:0.
    #[arg(long, value_name = "INTERFACE.STEP:PRIORITY", value_delimiter = ',')]
    clean_step_priority_override: Vec<PriorityOverride>,
    /// Power machines off whose cleaning failed, in place of leaving their ramdisk running.
    #[arg(long)]
    poweroff_in_cleanfail: bool,
}

impl Cleaning {
    /// Puts the options into the settings of a conductor.
    pub(crate) fn apply(self, settings: &mut Settings) {
        settings.automated_clean = self.automated_clean;
        settings.poweroff_in_cleanfail = self.poweroff_in_cleanfail;
        let overrides = self.clean_step_priority_override.into_iter();
        let priorities = overrides.map(|PriorityOverride(step, priority)| (step, priority));
        settings.steps.clean.priorities.extend(priorities);
    }
}
