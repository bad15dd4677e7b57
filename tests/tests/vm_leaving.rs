//! What the agent leaves behind in a machine that it switches off.

#![allow(clippy::unwrap_used)]

use farrier_tests::commanded_agent::CommandedAgent;
use farrier_tests::machine::{Hardware, free_port};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Time for an emulated machine to stop.
const PATIENCE: Duration = Duration::from_secs(120);

/// The events of a machine, from its beginning to its end.
fn events(socket: &Path) -> impl Iterator<Item = String> {
    let mut monitor = UnixStream::connect(socket).unwrap();
    monitor.set_read_timeout(Some(PATIENCE)).unwrap();
    monitor.write_all(b"{\"execute\": \"qmp_capabilities\"}\n").unwrap();
    let lines = BufReader::new(monitor).lines().map_while(Result::ok);
    let event = |line: String| Some(serde_json::from_str::<Value>(&line).ok()?["event"].as_str()?.to_owned());
    lines.filter_map(event)
}

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
    let monitor = ["-qmp".to_owned(), format!("unix:{},server=on,wait=off", socket.display())];
    let dist = std::env::var_os("FARRIER_DIST").map(PathBuf::from);
    let dist = dist.expect("FARRIER_DIST is not set: run cargo xtask test vm");
    let agent = CommandedAgent::boot(&hardware, &monitor, &dist, "").unwrap();
    let events = events(&socket);
    agent.order("standby.power_off", &json!({})).unwrap();
    let seen: Vec<_> = events.collect();
    let first = |name: &str| seen.iter().position(|event| event == name);
    assert!(first("RTC_CHANGE").is_some(), "{seen:?}\n{}", hardware.console().tail());
    assert!(first("RTC_CHANGE") < first("SHUTDOWN"), "{seen:?}");
}
