//! A real Debian system, from an empty machine of 256 MiB to its login prompt.

use farrier_tests::conductor::lab::{Instance, Lab, Machine};
use farrier_tests::environment;
use farrier_tests::images::server::{ImageServer, Reply};
use farrier_tests::machine::Firmware;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// Longest time from power on to login prompt of the deployed system, with an emulated processor.
const BOOT_LIMIT: Duration = Duration::from_secs(10 * 60);
const DISK_BYTES: u64 = 8 << 30;
const NODE: &str = "debian";
const HOST_NAME: &str = "mustang-1967";
/// Boot code, in front of the disk identifier and the partition table.
const BOOT_CODE: usize = 440;

fn start_of(file: &PathBuf) -> Vec<u8> {
    let mut start = vec![0; BOOT_CODE];
    File::open(file).unwrap().read_exact_at(&mut start, 0).unwrap();
    start
}

/// Deploys, and waits for the login prompt of the deployed system.
fn debian_boots_with_the_name_from_its_config_drive(firmware: Firmware) {
    let folder = TempDir::new().unwrap();
    let (disk, image) = (folder.path().join("disk.img"), PathBuf::from(environment::text("FARRIER_IMAGE")));
    File::create(&disk).unwrap().set_len(DISK_BYTES).unwrap();
    let config_drive = folder.path().join("config-drive");
    fs::create_dir_all(config_drive.join("openstack/latest")).unwrap();
    let metadata = serde_json::json!({"uuid": "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11", "hostname": HOST_NAME});
    fs::write(config_drive.join("openstack/latest/meta_data.json"), metadata.to_string()).unwrap();

    let lab = Lab::start(&PathBuf::from(environment::text("FARRIER_BIN")), folder.path(), &[]).unwrap();
    lab.enrol(&Machine {
        name: NODE.into(),
        mac: "52:54:00:fa:00:03".into(),
        dist: environment::text("FARRIER_DIST").into(),
        memory_mib: 256,
        disks: vec![(disk.clone(), "ROOT".into())],
        firmware,
        driver_info: Vec::new(),
        properties: Vec::new(),
    })
    .unwrap();
    let server = ImageServer::start(vec![Reply::File(image.clone())]).unwrap();
    let sha256 = environment::text("FARRIER_IMAGE_SHA256");
    let instance = Instance { url: server.guest_url(), sha256: &sha256, config_drive: Some(&config_drive) };
    lab.deploy(NODE, &instance, |_| {}).unwrap();
    assert_eq!(start_of(&disk), start_of(&image));

    let prompt = format!("{HOST_NAME} login:");
    lab.console(NODE).wait_for(&prompt, 0, BOOT_LIMIT).unwrap();
}

#[test]
fn vm_debian_is_deployed_and_boots_under_uefi() {
    debian_boots_with_the_name_from_its_config_drive(Firmware::Uefi);
}

#[test]
fn vm_debian_is_deployed_and_boots_under_bios() {
    debian_boots_with_the_name_from_its_config_drive(Firmware::Bios);
}
