//! The reference conductor writes the disk of an emulated machine, whose agent exports it.

use farrier_tests::environment;
use farrier_tests::image_server::{ImageServer, Reply};
use farrier_tests::instance::{GREETING, image, sha256};
use farrier_tests::lab::{Instance, Lab, Machine};
use farrier_tests::machine::{Firmware, free_port};
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const NODE: &str = "horse";
const DISK_BYTES: u64 = 64 << 20;
/// Longest time until a machine says what it is, with an emulated processor.
const PATIENCE: Duration = Duration::from_secs(180);

#[test]
fn vm_a_small_image_is_deployed_by_iscsi_and_boots() {
    let folder = TempDir::new().unwrap();
    let disk = folder.path().join("disk.img");
    fs::File::create(&disk).unwrap().set_len(DISK_BYTES).unwrap();
    let lab = Lab::start(&environment::path("FARRIER_BIN"), folder.path(), &[]).unwrap();
    let machine = Machine {
        name: NODE.into(),
        mac: "52:54:00:fa:00:43".into(),
        dist: environment::path("FARRIER_DIST"),
        firmware: Firmware::Bios,
        memory_mib: 256,
        disks: vec![(disk.clone(), "ROOT".into())],
        driver_info: vec![format!("iscsi_portal_port={}", free_port().unwrap())],
        properties: vec![r#"root_device={"serial": "ROOT"}"#.into()],
    };
    lab.enrol_with(&machine, &["deploy=iscsi"]).unwrap();
    let image = Arc::new(image().unwrap());
    let server = ImageServer::start(vec![Reply::Body(Arc::clone(&image))]).unwrap();
    // As the conductor reaches it, and not the machine.
    let instance = Instance { url: server.url(), sha256: &sha256(&image), config_drive: None };
    let mut events = Vec::new();
    lab.deploy(NODE, &instance, |event| events.push(event.event)).unwrap();
    for name in ["write_started", "image_written", "image_verified", "active"] {
        assert!(events.iter().any(|event| event == name), "{name}: {events:?}");
    }
    lab.console(NODE).wait_for(GREETING, 0, PATIENCE).unwrap();
    assert!(fs::read(&disk).unwrap()[..image.len()] == image[..]);
    let node = lab.node(NODE).unwrap();
    assert!(node["driver_internal_info"].get("iscsi_target").is_none(), "{node}");
    let log = fs::read_to_string(lab.folder().join("conductor.log")).unwrap();
    assert!(!log.contains("chap_password"), "{log}");
}
