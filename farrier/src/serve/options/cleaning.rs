//! Options of `farrier serve` about cleaning.

use clap::{ArgAction, Args};
use farrier_conductor::Settings;
use farrier_conductor::plan::PriorityOverride;

/// Options of cleaning.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cleaning")]
pub(crate) struct Cleaning {
    /// Run automated cleaning before a node becomes available. With `false`, the next user can read the previous
    /// user's data.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    automated_clean: bool,
    /// Override the priority of a clean step; 0 disables the step. Example: deploy.erase_devices:0.
    #[arg(long, value_name = "INTERFACE.STEP:PRIORITY", value_delimiter = ',')]
    clean_step_priority_override: Vec<PriorityOverride>,
    /// Power off machines whose cleaning failed. By default their ramdisk keeps running.
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
