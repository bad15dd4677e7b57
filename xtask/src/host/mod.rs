//! The machine on which a command runs: its programs, packages, disks, processors, and the checkout of this repository.

pub mod command;
pub mod disk_room;
pub mod npm_packages;
pub mod processor_time;
pub mod python_environment;
pub mod requirements;
pub mod setup;
pub mod workspace;
