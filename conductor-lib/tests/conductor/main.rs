//! The conductor from outside: real HTTP to it, a fake agent with real TLS, and fake machines.

// Only functions marked as tests may unwrap by default; here everything is test code.
#![allow(clippy::unwrap_used)]

mod agent;
mod attention;
mod clean;
mod crash;
mod custom_deploy;
mod deadlines;
mod deploy;
mod gate;
mod interfaces;
mod machine;
mod networks;
mod node_api;
mod orders;
mod pause;
mod power_sync;
mod ramdisk_api;
mod service;
mod stage;
