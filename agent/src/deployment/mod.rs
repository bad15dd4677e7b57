//! Deploying: choosing the [`root_disk`], writing an [`mod@image`] with its partitions and config drive, or having a
//! container image install itself ([`bootc`]).

pub mod bootc;
pub mod config_drive;
pub mod image;
pub mod memory;
pub mod partitioning;
pub mod root_disk;
