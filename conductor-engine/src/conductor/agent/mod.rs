//! What agents and the firmware of their machines ask the conductor.

mod boot_config;
mod discovery;
mod heartbeat;
mod inspection;
pub(crate) mod lookup;
