//! Deploying: choosing the [`root_disk`], writing an [`mod@image`] with its partitions and config drive, or having a
//! container image install itself ([`bootc`]); or an [`export`] for who writes it from elsewhere.

pub mod bootc;
pub mod config_drive;
pub mod export;
pub mod image;
pub mod memory;
pub mod partitioning;
pub mod root_disk;
