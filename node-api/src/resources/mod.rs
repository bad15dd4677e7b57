//! What there is beside nodes: ports, allocations, drivers, and what is a table of fields alone.

pub(crate) mod allocations;
pub(crate) mod collection;
pub(crate) mod drivers;
pub(crate) mod history;
pub(crate) mod ports;
pub(crate) mod raid;
