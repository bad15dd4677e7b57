//! The pages of a node.

mod disks;
pub(crate) mod explanation;
pub(crate) mod hardware;
pub(crate) mod history;
pub(crate) mod interfaces;
pub(crate) mod logs;
pub(crate) mod overview;
mod parts;
pub(crate) mod timeline;
