//! Whole deployments of images from a loopback server to loop devices.

#![allow(clippy::unwrap_used)]

mod access;
mod compressed;
mod deployment;
#[path = "../../../disk/tests/support/mod.rs"]
mod disk_support;
mod downloads;
mod large;
mod qcow2;
mod raw;
mod rebuild;
mod tables;
