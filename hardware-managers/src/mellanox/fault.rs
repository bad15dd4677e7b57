//! Why firmware or its settings could not be changed.

use crate::error::StepError;
use farrier_linux::process::RunError;
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::step::Phase;

/// A step on network cards failed.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// An argument is not as it should be.
    #[error("{argument}: {reason}")]
    Argument {
        /// Name of the argument.
        argument: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A program failed, or is missing.
    #[error(transparent)]
    Tool(#[from] RunError),
    /// A card or an image says nothing that can be understood.
    #[error("mstflint reports no version and PSID of {target}; is it a firmware of an NVIDIA network card?")]
    Silent {
        /// Address of the card, or the image.
        target: String,
    },
    /// The image is not what it is said to be.
    #[error(
        "firmware image {image}: its {what} is {found}, expected {expected}; correct the image or the step"
    )]
    Image {
        /// Its version and board.
        image: String,
        /// What differs.
        what: &'static str,
        /// What it is.
        found: String,
        /// What was said.
        expected: String,
    },
    /// The image cannot be had.
    #[error("firmware image {image}: {reason}")]
    Fetch {
        /// Its version and board.
        image: String,
        /// Why not.
        reason: String,
    },
    /// A parameter does not exist.
    #[error("network card {card} has no parameter {parameter}: {reason}")]
    Parameter {
        /// Address of the card.
        card: String,
        /// Its name.
        parameter: String,
        /// Who does not know it.
        reason: &'static str,
    },
    /// The program reports success and the card says otherwise.
    #[error(
        "network card {card}: {what} is {found} after it was set to {expected}; look for its errors in the kernel log"
    )]
    NotDone {
        /// Address of the card.
        card: String,
        /// What was set.
        what: String,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
}

impl Fault {
    /// The failure of a step in a phase.
    pub fn of_step(self, phase: Phase) -> StepError {
        let kind = match self {
            Self::Argument { .. } => ErrorKind::InvalidCommandParamsError,
            _ => ErrorKind::of_phase(phase),
        };
        StepError::Failed(CommandError::new(kind, self.to_string()))
    }
}
