//! The conductor from outside: real HTTP to it, a fake agent with real TLS, and fake machines.

// Only functions marked as tests may unwrap by default; here everything is test code.
#![allow(clippy::unwrap_used)]

mod adopt;
mod agent;
mod allocations;
mod attention;
mod authorization;
mod boot_fallback;
mod certificates;
mod clean;
mod console;
mod crash;
mod custom_deploy;
mod deadlines;
mod deploy;
mod deploy_calls;
mod deploy_family;
mod diagnosis;
mod disk_export;
mod explain;
mod extension;
mod fast_track;
mod firmware;
mod gate;
mod history;
mod inspection;
mod interfaces;
mod machine;
mod metrics;
mod networks;
mod node_api;
mod orders;
mod pause;
mod power;
mod power_sync;
mod raid;
mod ramdisk_api;
mod ramdisk_logs;
mod rescue;
mod resources;
mod rest;
mod retry;
mod secrets;
mod service;
mod stage;
mod workflows;
