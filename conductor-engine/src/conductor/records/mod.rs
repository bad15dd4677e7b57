//! The records that operators create, change and delete.

mod allocations;
mod nodes;
mod ports;
mod resources;
