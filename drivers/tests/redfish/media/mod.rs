//! Virtual media.

mod boot;
mod drives;
mod sources;
mod stage;
