//! The reference conductor rescues an emulated machine, and starts its instance again.

use farrier_tests::conductor::lab::{Instance, Lab, Machine};
use farrier_tests::environment;
use farrier_tests::images::instance::{GREETING, image, sha256};
use farrier_tests::images::server::{ImageServer, Reply};
use farrier_tests::machine::Firmware;
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const NODE: &str = "horse";
const PASSWORD: &str = "oats and barley";
const DISK_BYTES: u64 = 64 << 20;
/// What PID 1 of the ramdisk says when its user can log in.
const ENTRANCE: &str = "the host key's fingerprint is ";
/// Longest time until a machine says what it is, with an emulated processor.
const PATIENCE: Duration = Duration::from_secs(180);

#[test]
fn vm_a_machine_is_rescued_and_starts_from_its_disk_again() {
    let folder = TempDir::new().unwrap();
    let (disk, password) = (folder.path().join("disk.img"), folder.path().join("password"));
    fs::File::create(&disk).unwrap().set_len(DISK_BYTES).unwrap();
    fs::write(&password, format!("{PASSWORD}\n")).unwrap();
    let lab = Lab::start(&environment::path("FARRIER_BIN"), folder.path(), &[]).unwrap();
    lab.enrol(&Machine {
        name: NODE.into(),
        mac: "52:54:00:fa:00:42".into(),
        dist: environment::path("FARRIER_DIST"),
        firmware: Firmware::Bios,
        memory_mib: 256,
        disks: vec![(disk, "ROOT".into())],
        driver_info: vec!["kernel_append_params=ipa-disk-wait-attempts=1".into()],
        properties: vec![r#"root_device={"serial": "ROOT"}"#.into()],
    })
    .unwrap();
    let image = Arc::new(image().unwrap());
    let server = ImageServer::start(vec![Reply::Body(Arc::clone(&image))]).unwrap();
    let instance = Instance { url: server.guest_url(), sha256: &sha256(&image), config_drive: None };
    lab.deploy(NODE, &instance, |_| {}).unwrap();

    lab.order(&["node", "rescue", NODE, "--password-file", password.to_str().unwrap()]).unwrap();
    let node = lab.node(NODE).unwrap();
    let console = lab.console(NODE);
    assert_eq!((&node["provision_state"], &node["power_state"]), (&"rescue".into(), &"power on".into()));
    assert!(node["last_error"].is_null(), "{node}");
    console.wait_for(ENTRANCE, 0, PATIENCE).unwrap();
    let log = fs::read_to_string(lab.folder().join("conductor.log")).unwrap();
    for text in [node.to_string(), log, console.text()] {
        assert!(!text.contains(PASSWORD) && !text.contains("$5$"), "{text}");
    }

    lab.order(&["node", "unrescue", NODE]).unwrap();
    let node = lab.node(NODE).unwrap();
    assert_eq!((&node["provision_state"], &node["power_state"]), (&"active".into(), &"power on".into()));
    lab.console(NODE).wait_for(GREETING, 0, PATIENCE).unwrap();
}
