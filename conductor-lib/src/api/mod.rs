//! HTTP interfaces: what firmware, agents and operators call.

pub mod authorization;
pub mod boot;
pub mod nodes;
pub mod ramdisk;
mod reply;
mod version;

pub use version::description;
