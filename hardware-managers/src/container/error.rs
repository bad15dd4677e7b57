//! Why a container did not do its work.

use crate::error::StepError;
use farrier_linux::process::RunError;
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::step::Phase;
use std::io;
use std::path::PathBuf;

/// A container was refused, or did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// The operator does not allow it.
    #[error(
        "container image {image:?} is not among the allowed_containers of the agent's configuration; add it \
         there, or make it a step of the steps file"
    )]
    NotPermitted {
        /// The image as it was asked for.
        image: String,
    },
    /// It is no name of an image.
    #[error(
        "container_url {image:?} is no container image: expected registry/path:tag or registry/path@digest"
    )]
    Image {
        /// What was given.
        image: String,
    },
    /// An argument is no list of options.
    #[error("{argument} must be a text or a list of texts")]
    Options {
        /// Name of the argument.
        argument: &'static str,
    },
    /// A setting of the instance cannot be read.
    #[error("{0}")]
    Setting(String),
    /// A secret for a registry cannot be read.
    #[error(
        "oci_pull_secret is not base64 of the credentials for a registry; correct the node's image_pull_secret"
    )]
    Secret,
    /// A file of the runner cannot be written or removed.
    #[error("{file}: {source}; is the file system of the ramdisk full?")]
    File {
        /// The file.
        file: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The image did not come.
    #[error("container image {image} cannot be fetched: {reason}")]
    Pull {
        /// The image.
        image: String,
        /// What the runner says.
        reason: String,
    },
    /// The container failed.
    #[error("container {image} failed: {reason}")]
    Run {
        /// The image.
        image: String,
        /// What the runner or the container says.
        reason: String,
    },
}

impl ContainerError {
    /// The failure of an installation (section 12.1).
    pub fn of_install(self) -> CommandError {
        let kind = match &self {
            Self::NotPermitted { .. } => ErrorKind::ContainerNotPermittedError,
            Self::Image { .. } | Self::Options { .. } | Self::Setting(_) | Self::Secret => {
                ErrorKind::InvalidCommandParamsError
            }
            Self::File { .. } => ErrorKind::CommandExecutionError,
            // Another image would do.
            Self::Run { reason, .. } if is_without_bootc(reason) => ErrorKind::ImageDownloadError,
            Self::Pull { .. } => ErrorKind::ImageDownloadError,
            Self::Run { .. } => ErrorKind::ImageWriteError,
        };
        CommandError::new(kind, self.to_string())
    }

    /// The failure of a step in a phase.
    pub fn of_step(self, phase: Phase) -> StepError {
        let kind = match self {
            Self::NotPermitted { .. } => ErrorKind::ContainerNotPermittedError,
            Self::Image { .. } | Self::Options { .. } | Self::Setting(_) | Self::Secret => {
                ErrorKind::InvalidCommandParamsError
            }
            Self::File { .. } | Self::Pull { .. } | Self::Run { .. } => ErrorKind::of_phase(phase),
        };
        StepError::Failed(CommandError::new(kind, self.to_string()))
    }
}

/// Whether a runner says that the image has no program bootc.
fn is_without_bootc(reason: &str) -> bool {
    ["executable file", "bootc", "not found"].iter().all(|part| reason.contains(part))
}

/// What a runner says for itself. What it was started with may hold credentials and is left out (S48).
pub(super) fn reason(error: RunError) -> String {
    match error {
        RunError::Failed { status, output, .. } => format!("{status}: {output}"),
        RunError::TimedOut { limit, output, .. } => {
            format!("it did not end within {} s: {output}", limit.as_secs())
        }
        other => other.to_string(),
    }
}
