//! Deploy interfaces: what puts an image onto a machine.

pub mod image;
