//! What is written to tables and read from them. No function begins a transaction or ends it.

pub(super) mod allocations;
pub(super) mod boot_traces;
pub(super) mod certificates;
pub(super) mod diagnosis;
pub(super) mod history;
pub(super) mod leases;
pub(super) mod ports;
pub(super) mod reading;
pub(super) mod resources;
pub(super) mod writing;
