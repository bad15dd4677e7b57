//! A laboratory for black-box tests: the reference conductor or a real Ironic as a process,
//! emulated machines they deploy, and an image server that can misbehave.
//!
//! It uses the programs as an operator does and nothing else of the project.

pub mod agent;
pub mod bmc;
pub mod book;
pub mod browser;
pub mod cells;
pub mod conductor;
pub mod disk;
pub mod environment;
pub mod images;
pub mod iscsi;
pub mod machine;
pub mod network;
pub mod postgres;
pub mod ramdisk;
pub mod strangers;
