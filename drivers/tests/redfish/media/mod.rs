//! Virtual media.

mod boot;
mod drives;
mod sources;
pub mod stage;
