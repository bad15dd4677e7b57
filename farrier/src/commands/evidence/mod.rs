//! Commands about what the conductor recorded of a node.

pub(crate) mod certificates;
pub(crate) mod explain;
pub(crate) mod history;
pub(crate) mod logs;
