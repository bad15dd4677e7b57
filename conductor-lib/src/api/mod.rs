//! HTTP interfaces: what agents call and what operators call.

pub mod nodes;
pub mod ramdisk;
mod reply;
mod version;

pub use version::description;
