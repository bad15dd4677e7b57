//! What the agent leaves in the firmware of a machine: boot entries and the time.

use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::agent::stub_conductor::NODE;
use farrier_tests::agent::stub_conductor::StubConductor;
use farrier_tests::environment;
use farrier_tests::images::instance;
use farrier_tests::machine::monitor::Monitor;
use farrier_tests::machine::{Firmware, Hardware, free_port};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::time::Duration;
use tempfile::TempDir;

/// Time for a command.
const PATIENCE: Duration = Duration::from_secs(120);
const DISK_BYTES: u64 = 5 << 30;

/// A machine whose disk holds a small system, and its agent.
struct Stand {
    hardware: Hardware,
    agent: CommandedAgent,
    monitor: Monitor,
    _folder: TempDir,
}

impl Stand {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let disk = folder.path().join("disk.raw");
        fs::write(&disk, instance::image().unwrap()).unwrap();
        File::options().write(true).open(&disk).unwrap().set_len(DISK_BYTES).unwrap();
        let hardware = Hardware {
            mac: "52:54:00:fa:00:48".into(),
            agent_port: free_port().unwrap(),
            keyboard_port: free_port().unwrap(),
            disks: vec![(disk, "ROOT")],
            media: vec![],
            folder: folder.path().into(),
        };
        let socket = folder.path().join("qmp");
        let dist = environment::path("FARRIER_DIST");
        let agent = CommandedAgent::boot_under(
            Firmware::Uefi,
            StubConductor::start().unwrap(),
            &hardware,
            &Monitor::arguments(&socket),
            &dist,
            "",
        )
        .unwrap();
        let monitor = Monitor::connect(&socket).unwrap();
        Self { hardware, agent, monitor, _folder: folder }
    }

    /// What a command that succeeds results in.
    fn succeed(&self, command: &str, params: &Value) -> Value {
        self.agent.succeed(command, params, PATIENCE).unwrap()
    }

    /// The boot entries that were removed.
    fn clean(&self) -> Value {
        let step = json!({"step": "clean_uefi_nvram", "interface": "deploy"});
        let params = json!({"step": step, "node": {"uuid": NODE}, "ports": []});
        self.succeed("clean.execute_clean_step", &params)["clean_result"].clone()
    }
}

#[test]
fn vm_boot_entries_of_an_installed_system_are_made_and_removed() {
    let stand = Stand::new();
    stand.clean();
    stand.succeed("image.install_bootloader", &json!({"root_uuid": "0x12345678"}));
    let removed = stand.clean();
    let paths: Vec<_> =
        removed.as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect();
    // The image has a loader for aarch64, too.
    assert_eq!(paths, [r"HD(1,MBR,0x12345678,0x800,0x2000)/File(\EFI\BOOT\BOOTX64.EFI)"]);
    assert_eq!(stand.clean(), json!([]));
}

#[test]
fn vm_f48_the_hardware_clock_is_set_before_the_machine_is_switched_off() {
    let stand = Stand::new();
    let events = stand.monitor.events();
    stand.agent.order("standby.power_off", &json!({})).unwrap();
    let seen: Vec<_> = events.collect();
    let first = |name: &str| seen.iter().position(|event| event == name);
    assert!(first("RTC_CHANGE").is_some(), "{seen:?}\n{}", stand.hardware.console().tail());
    assert!(first("RTC_CHANGE") < first("SHUTDOWN"), "{seen:?}");
}
