//! What commands print: tables, times, nodes and how a deployment goes.

pub(crate) mod node;
pub(crate) mod progress;
pub(crate) mod table;
pub(crate) mod times_of_day;
