//! RAID volumes: what operators may want, and what is noted of those that were made (section 1.12).
//!
//! With the interface `agent` they are made and deleted by steps of the agent: `raid.create_configuration` and
//! `raid.delete_configuration` of a cleaning by hand, and `raid.apply_configuration` of a deployment.

pub mod config;
mod outcome;
mod steps;

pub use config::{LOGICAL_DISK_PROPERTIES, check};

pub(crate) use outcome::{note_deleted, note_made};
pub use steps::fault;
