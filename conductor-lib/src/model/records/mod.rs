//! What an engine keeps beside nodes: orders, history, allocations, and what operators define.

pub(crate) mod allocation;
pub(crate) mod history;
pub(crate) mod order;
pub(crate) mod permission;
pub(crate) mod resource;
