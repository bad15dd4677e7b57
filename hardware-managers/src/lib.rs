//! Hardware managers: what can be done to a machine, and which manager does it (section 9).
//!
//! A manager declares its steps as data; [`dispatch::HardwareManagers`] merges the declarations of
//! all managers into one list and runs a step by its name.

mod burn_in;
pub mod container;
pub mod dispatch;
pub mod erase;
pub mod error;
pub mod external;
#[cfg(test)]
mod fake_host;
pub mod filter;
pub mod generic;
mod inject_files;
pub mod intel_cna;
pub mod inventory;
pub mod manager;
pub mod mellanox;
pub mod reserved;
pub mod setting;
pub mod smbios;
