//! The line that `farrier-agent` prints about an error, with the code of the error at its end.

use crate::doctor::NotReached;
use crate::life::AgentError;
use farrier_init::virtual_media::VirtualMediaError;
use farrier_linux::modules::ModuleError;
use farrier_protocol::error_code::{ErrorCode, agent as codes};
use std::error::Error;
use std::io;
use std::path::PathBuf;

/// A command of `farrier-agent` failed for a reason of its own.
#[derive(Debug, thiserror::Error)]
pub enum CommandFailure {
    /// Only the kernel starts PID 1.
    #[error("init works as PID 1 only: boot a ramdisk made by farrier-image")]
    NotInit,
    /// A property of a node is not JSON.
    #[error("--{option} must be JSON")]
    NotJson {
        /// The option, without its dashes.
        option: &'static str,
        /// The position of the fault.
        source: serde_json::Error,
    },
    /// The disks do not match the hints, or the agent must not write the disk that matches.
    #[error("no disk would be written: correct the hints, or free the disk")]
    NoDisk,
    /// A lease cannot be applied.
    #[error("{0:#}")]
    Lease(anyhow::Error),
    /// An external hardware manager breaks its protocol.
    #[error("{} breaks {rules} rules; see the page about external hardware managers", program.display())]
    ManagerBreaksRules {
        /// The manager.
        program: PathBuf,
        /// The number of rules.
        rules: usize,
    },
}

impl CommandFailure {
    fn code(&self) -> &'static ErrorCode {
        match self {
            Self::NotInit | Self::NotJson { .. } => codes::INVALID_OPTION,
            Self::NoDisk => codes::NO_DEVICE,
            Self::Lease(_) => codes::LEASE_FAILED,
            Self::ManagerBreaksRules { .. } => codes::MANAGER_BREAKS_RULES,
        }
    }
}

impl AgentError {
    fn code(&self) -> &'static ErrorCode {
        match self {
            Self::Network(_) => codes::NO_NETWORK,
            Self::Discovery(_) => codes::NO_CONDUCTOR,
            Self::Http(_) => codes::HTTP_CLIENT,
            Self::Clock(_) => codes::CLOCK,
            Self::Lookup(_) => codes::LOOKUP_FAILED,
            Self::Advertise(_) => codes::NO_CALLBACK_ADDRESS,
            Self::Tls(_) => codes::CERTIFICATE,
            Self::Listen(_) => codes::LISTEN,
            Self::Serve(_) => codes::API_FAILED,
        }
    }
}

/// The code of an error, or of the most precise of its causes.
fn code_of(error: &anyhow::Error) -> &'static ErrorCode {
    let given = |cause: &(dyn Error + 'static)| {
        let of_command = || cause.downcast_ref::<CommandFailure>().map(CommandFailure::code);
        let of_life = || cause.downcast_ref::<AgentError>().map(AgentError::code);
        let of_disk =
            || cause.downcast_ref::<farrier_disk::Error>().map(|error| codes::of_class(error.kind()));
        of_command().or_else(of_life).or_else(of_disk)
    };
    let has = |is_one: fn(&(dyn Error + 'static)) -> bool| error.chain().any(is_one);
    match error.chain().find_map(given) {
        Some(code) => code,
        None if has(|cause| cause.is::<NotReached>()) => codes::CONDUCTOR_NOT_REACHED,
        None if has(|cause| cause.is::<ModuleError>()) => codes::KERNEL_MODULE,
        None if has(|cause| cause.is::<VirtualMediaError>()) => codes::VIRTUAL_MEDIA,
        None if has(|cause| cause.is::<io::Error>() || cause.is::<nix::Error>()) => codes::FILE,
        None => codes::AGENT_FAILED,
    }
}

/// The error with its causes, and its code at the end.
pub fn line(error: &anyhow::Error) -> String {
    code_of(error).after(&format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::wait::NetworkError;
    use anyhow::anyhow;

    #[test]
    fn each_error_has_the_most_precise_code_at_the_end_of_its_line() {
        let io = || io::Error::from(io::ErrorKind::NotFound);
        for (error, expected) in [
            (anyhow!(CommandFailure::NotInit), "farrier-image [FAR-0709]"),
            (anyhow!(CommandFailure::NoDisk).context("plan"), "free the disk [FAR-0428]"),
            (anyhow!(AgentError::Network(NetworkError::Kernel(io()))), "entity not found [FAR-0701]"),
            (anyhow!(NotReached), "check that failed [FAR-0711]"),
            (anyhow!(AgentError::Serve(io())), "entity not found [FAR-0708]"),
            (anyhow!(io()).context("cannot read a"), "cannot read a: entity not found [FAR-0710]"),
            (anyhow!(CommandFailure::Lease(anyhow!("no interface"))), "no interface [FAR-0714]"),
            (anyhow!("strange"), "strange [FAR-0799]"),
        ] {
            let line = line(&error);
            assert!(line.ends_with(expected), "{line}");
        }
    }
}
