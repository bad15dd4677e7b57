//! Deployments: the interface, the implementations that there are, and what they read of a node.

pub mod agent_base;
mod agent_deploy;
mod agent_operation;
pub mod autodetect;
pub mod bootc;
pub mod custom_agent;
pub mod direct;
pub mod disk_export;
pub mod image;
pub mod instance;
mod interface;
pub mod layout;
pub mod local_boot;
pub mod ramdisk;

pub use agent_deploy::AgentDeploy;
pub use autodetect::Autodetect;
pub use bootc::Bootc;
pub use custom_agent::CustomAgent;
pub use direct::Direct;
pub use interface::{AfterHeartbeat, DeployInterface};
pub use ramdisk::Ramdisk;

use crate::error::Error;
use crate::interfaces::base::InterfaceError;

/// The fault that an interface finds in the record of a node.
pub fn invalid(error: Error) -> InterfaceError {
    match error {
        Error::Invalid { field, reason } => InterfaceError::Invalid { field, reason },
        other => InterfaceError::driver(other),
    }
}
