//! Containers that do the work of steps (section 12.2), and those that install an operating system
//! (section 12.1).
//!
//! ```text
//! steps file ─┐
//! arguments  ─┴▶ permit ──▶ Permitted ─▶ pull ─▶ run
//! ```
//!
//! Nothing but [`permit`](permit::permit) makes what container steps run, so no way leads around the operator's
//! allow-list (S06). Before systems that install themselves stands the option `disable_bootc_deploy` instead.
//! Fetching and running are two acts: credentials of a registry exist during the first only (S09).

pub mod bootc;
mod error;
mod manager;
mod permit;
mod runner;
mod secret;
mod settings;
mod steps_file;

pub use error::ContainerError;
pub use manager::ContainerHardwareManager;
pub use runner::Runner;
pub use settings::{RunnerKind, Settings, Words};

#[cfg(test)]
mod fake_runner;
