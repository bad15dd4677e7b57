//! Deploy interfaces: what puts an image onto a machine.

pub(crate) mod direct;
pub mod image;
