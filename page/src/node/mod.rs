//! The pages of a node.

pub(crate) mod explanation;
pub(crate) mod hardware;
pub(crate) mod history;
pub(crate) mod interfaces;
pub(crate) mod overview;
mod parts;
