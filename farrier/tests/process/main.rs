//! `farrier serve` as a process: killed, stopped, without room on its disk, with agents that mean no good, with operators
//! who have to show who they are, and with networks of Neutron.

// Only functions marked as tests may unwrap by default; here everything is test code.
#![allow(clippy::unwrap_used)]

/// The agent of the library's own tests.
#[path = "../../../conductor-engine/tests/conductor/stand_ins/agent.rs"]
#[allow(dead_code, reason = "what only the library's tests make it do")]
mod agent;
mod conductor;
mod configuration;
mod database;
mod ended;
mod hardware;
mod hostile_agent;
mod listeners;
mod machine;
mod neutron;
mod night;
mod operators;
/// The ports of that Neutron.
#[path = "../../../drivers/tests/neutron/ports.rs"]
#[allow(dead_code, reason = "what only the drivers' tests make it do")]
mod ports;
mod service;
mod site;
/// The Keystone and the Neutron of the drivers' own tests.
#[path = "../../../drivers/tests/neutron/stand_in.rs"]
#[allow(dead_code, reason = "what only the drivers' tests make it do")]
mod stand_in;
mod strangers;
mod workflows;
