//! The reference conductor has emulated machines cleaned by the agent in their ramdisk.

use farrier_tests::conductor::lab::{Lab, Machine};
use farrier_tests::environment;
use farrier_tests::machine::Firmware;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const NODE: &str = "horse";
const DISK_BYTES: usize = 64 << 20;
/// What an earlier user has left on every byte of the disk.
const OLD: u8 = 0xA5;

/// A machine that the conductor has under control, with a disk that is full.
fn manageable(folder: &Path) -> (Lab, PathBuf) {
    let disk = folder.join("disk.img");
    fs::write(&disk, vec![OLD; DISK_BYTES]).unwrap();
    let lab = Lab::start(&environment::path("FARRIER_BIN"), folder, &[]).unwrap();
    lab.enrol(&Machine {
        name: NODE.into(),
        mac: "52:54:00:fa:00:41".into(),
        dist: environment::path("FARRIER_DIST"),
        firmware: Firmware::Bios,
        memory_mib: 256,
        disks: vec![(disk.clone(), "ROOT".into())],
        driver_info: vec!["kernel_append_params=ipa-disk-wait-attempts=1".into()],
        properties: Vec::new(),
    })
    .unwrap();
    lab.order(&["node", "manage", NODE]).unwrap();
    (lab, disk)
}

#[test]
fn vm_a_machine_is_available_when_every_byte_of_its_disk_is_erased() {
    let folder = TempDir::new().unwrap();
    let (lab, disk) = manageable(folder.path());
    lab.order(&["node", "provide", NODE]).unwrap();
    let node = lab.node(NODE).unwrap();
    assert_eq!((&node["provision_state"], &node["power_state"]), (&"available".into(), &"power off".into()));
    assert!(node["last_error"].is_null() && node["clean_step"] == json!({}), "{node}");
    let proof = lab.order(&["certificates", NODE, "--verify"]).unwrap();
    assert!(proof.contains("Erasure: proven: ROOT erased"), "{proof}");
    let certified = proof.lines().find(|line| line.starts_with("ROOT"));
    assert!(certified.is_some_and(|line| line.contains(" erased ") && line.ends_with("verified")), "{proof}");
    let history = lab.order(&["history", NODE]).unwrap();
    assert!(history.contains("clean step deploy.erase_devices (2 of 2)"), "{history}");
    let console = lab.console(NODE).tail();
    assert!(fs::read(disk).unwrap().iter().all(|byte| *byte != OLD), "something is left\n{console}");
}

#[test]
fn vm_a_clean_step_that_the_agent_does_not_have_is_told_before_anything_is_erased() {
    let folder = TempDir::new().unwrap();
    let (lab, disk) = manageable(folder.path());
    let steps = r#"[{"interface": "deploy", "step": "erase_devices"},
        {"interface": "deploy", "step": "shine"}]"#;
    let error = lab.order(&["node", "clean", NODE, "--steps", steps]).unwrap_err().to_string();
    let node = lab.node(NODE).unwrap();
    assert_eq!(node["provision_state"], "clean failed", "{node}");
    for said in [&error, node["last_error"].as_str().unwrap()] {
        assert!(said.contains("deploy.shine is unknown") && said.contains("deploy.erase_devices,"), "{said}");
    }
    assert!(fs::read(disk).unwrap().iter().all(|byte| *byte == OLD), "something was written");
}
