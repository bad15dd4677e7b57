//! What the agent leaves behind in a machine that it switches off.

#![allow(clippy::unwrap_used)]

use farrier_tests::commanded_agent::CommandedAgent;
use farrier_tests::machine::{Hardware, free_port};
use farrier_tests::monitor::Monitor;
use serde_json::json;
use std::path::PathBuf;
use tempfile::TempDir;

#[test]
fn vm_f48_the_hardware_clock_is_set_before_the_machine_is_switched_off() {
    let folder = TempDir::new().unwrap();
    let hardware = Hardware {
        mac: "52:54:00:fa:00:48".into(),
        agent_port: free_port().unwrap(),
        keyboard_port: free_port().unwrap(),
        disks: vec![],
        media: vec![],
        folder: folder.path().into(),
    };
    let socket = folder.path().join("qmp");
    let dist = std::env::var_os("FARRIER_DIST").map(PathBuf::from);
    let dist = dist.expect("FARRIER_DIST is not set: run cargo xtask test vm");
    let agent = CommandedAgent::boot(&hardware, &Monitor::arguments(&socket), &dist, "").unwrap();
    let events = Monitor::connect(&socket).unwrap().events();
    agent.order("standby.power_off", &json!({})).unwrap();
    let seen: Vec<_> = events.collect();
    let first = |name: &str| seen.iter().position(|event| event == name);
    assert!(first("RTC_CHANGE").is_some(), "{seen:?}\n{}", hardware.console().tail());
    assert!(first("RTC_CHANGE") < first("SHUTDOWN"), "{seen:?}");
}
