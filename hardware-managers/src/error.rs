//! Errors of steps.

use farrier_protocol::error::{CommandError, ErrorKind};
use std::path::PathBuf;

/// A step could not be run, or failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// No manager declares it.
    #[error("no hardware manager has a {phase} step {step:?}; those known are: {known}")]
    Unknown {
        /// Word for the phase.
        phase: &'static str,
        /// Name that was asked for.
        step: String,
        /// Names that would have been understood.
        known: String,
    },
    /// An argument is missing.
    #[error("step {step} needs the argument {argument:?}")]
    MissingArgument {
        /// Name of the step.
        step: &'static str,
        /// Name of the argument.
        argument: &'static str,
    },
    /// A setting in the node's record cannot be read.
    #[error("{place} {key} is {value}, expected {expected}; correct it in the node's record")]
    InvalidSetting {
        /// Part of the record that holds it.
        place: &'static str,
        /// Name of the setting.
        key: &'static str,
        /// What it holds.
        value: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// The manager cannot do it on this machine; another one may.
    #[error("no hardware manager can do it here: {reasons}")]
    Incompatible {
        /// What each manager that has the step says.
        reasons: String,
    },
    /// An outside manager took a name that is reserved (S07).
    #[error(
        "{} declares the step {step:?}, which is reserved; rename the step, or take the file out of the ramdisk",
        .program.display()
    )]
    Reserved {
        /// File of the manager.
        program: PathBuf,
        /// Name of the step.
        step: &'static str,
    },
    /// The step ran and failed.
    #[error("{}", .0.text())]
    Failed(CommandError),
}

impl From<StepError> for CommandError {
    fn from(error: StepError) -> Self {
        let kind = match &error {
            StepError::Failed(error) => return error.clone(),
            StepError::Unknown { .. } | StepError::Incompatible { .. } | StepError::Reserved { .. } => {
                ErrorKind::HardwareManagerMethodNotFound
            }
            StepError::MissingArgument { .. } | StepError::InvalidSetting { .. } => {
                ErrorKind::InvalidCommandParamsError
            }
        };
        CommandError::new(kind, error.to_string())
    }
}
