//! The last words of a system that broke down, which its firmware keeps for the next one.

use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::agent::stub_conductor::StubConductor;
use farrier_tests::environment;
use farrier_tests::machine::monitor::Monitor;
use farrier_tests::machine::{Firmware, Hardware, free_port};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

const NODE: &str = "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11";
/// How long an emulated machine may take for a step, or to break down.
const STEP: Duration = Duration::from_secs(200);
/// An interrupt from outside makes the kernel panic, and that ends the machine.
const PARAMETERS: &str = "ipa-disk-wait-attempts=1 unknown_nmi_panic panic=-1";

/// A machine that keeps its firmware's variables.
struct Stable {
    hardware: Hardware,
    folder: TempDir,
}

impl Stable {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let hardware = Hardware {
            mac: "52:54:00:fa:00:0b".into(),
            agent_port: free_port().unwrap(),
            keyboard_port: free_port().unwrap(),
            disks: Vec::new(),
            media: Vec::new(),
            folder: folder.path().to_owned(),
        };
        Self { hardware, folder }
    }

    fn monitor(&self) -> PathBuf {
        self.folder.path().join("monitor")
    }

    fn boot(&self) -> CommandedAgent {
        let dist = environment::path("FARRIER_DIST");
        let mut arguments = Monitor::arguments(&self.monitor()).to_vec();
        arguments.push("-no-reboot".to_owned());
        let conductor = StubConductor::start().unwrap();
        CommandedAgent::boot_under(Firmware::Uefi, conductor, &self.hardware, &arguments, &dist, PARAMETERS)
            .unwrap()
    }

    /// Names of the records that the step has removed.
    fn erase(&self, agent: &CommandedAgent) -> Vec<String> {
        let params = json!({
            "step": {"step": "erase_pstore", "interface": "deploy"},
            "node": {"uuid": NODE},
            "ports": [],
        });
        let result = &agent.succeed("clean.execute_clean_step", &params, STEP).unwrap()["clean_result"];
        assert_eq!(result["backend"], "efi", "{result}");
        let removed = result["removed"].as_array().unwrap().iter();
        removed.filter_map(Value::as_str).map(str::to_owned).collect()
    }
}

#[test]
fn vm_s21_what_a_broken_system_left_in_the_firmware_is_removed() {
    let stable = Stable::new();
    let mut agent = stable.boot();
    assert_eq!(stable.erase(&agent), Vec::<String>::new());
    // The step has loaded the driver, so that the kernel has a place for its last words.
    Monitor::connect(&stable.monitor()).unwrap().execute("inject-nmi", &json!({})).unwrap();
    agent.wait_until_off(STEP).unwrap();
    let console = stable.hardware.console().text();
    assert!(console.contains("Kernel panic"), "{}", stable.hardware.console().tail());

    let agent = stable.boot();
    let removed = stable.erase(&agent);
    assert!(removed.iter().any(|name| name.starts_with("dmesg-efi")), "{removed:?}");
    assert_eq!(stable.erase(&agent), Vec::<String>::new());
}
