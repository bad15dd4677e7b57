//! HTTP interfaces: what firmware, agents and operators call.

mod allocations;
mod asked;
pub mod authorization;
mod body;
pub mod boot;
mod drivers;
pub mod extension;
mod fields;
mod history;
mod inspection;
mod json_patch;
mod listing;
#[cfg(feature = "metrics")]
pub mod metrics;
pub mod nodes;
mod patch;
mod ports;
mod raid;
pub mod ramdisk;
pub mod reference;
mod reply;
mod request_id;
mod resources;
mod routes;
mod spool;
mod version;
mod view;

pub use asked::{PublicUrl, Scheme};
pub use version::description;
