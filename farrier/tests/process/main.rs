//! `farrier serve` as a process: killed, stopped, without room on its disk, with agents that mean no good, and with
//! operators who have to show who they are.

// Only functions marked as tests may unwrap by default; here everything is test code.
#![allow(clippy::unwrap_used)]

/// The agent of the library's own tests.
#[path = "../../../conductor-lib/tests/conductor/agent.rs"]
#[allow(dead_code, reason = "what only the library's tests make it do")]
mod agent;
mod conductor;
mod full_disk;
mod hardware;
mod hostile_agent;
mod killed;
mod machine;
mod night;
mod operators;
mod site;
mod stopped;
mod workflows;
