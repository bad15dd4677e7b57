//! Machines that lack something, or that boot with something that is damaged: one line tells, and the agent
//! goes on.

use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::agent::stub_conductor::NODE;
use farrier_tests::bmc::media;
use farrier_tests::environment;
use farrier_tests::images::instance;
use farrier_tests::images::server::{ImageServer, Reply};
use farrier_tests::machine::{Boot, Hardware, Medium, free_port};
use serde_json::json;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Longest time of a command, or until a line is on the console, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);
const DISK: u64 = 5 << 30;
/// Bytes of a file that are far more than what a drive reads at a time.
const MUCH: usize = 512 << 10;

fn hardware(folder: &Path) -> Hardware {
    let disk = folder.join("disk");
    File::create(&disk).unwrap().set_len(DISK).unwrap();
    Hardware {
        mac: "52:54:00:fa:00:61".into(),
        agent_port: free_port().unwrap(),
        keyboard_port: free_port().unwrap(),
        disks: vec![(disk, "ROOT")],
        media: vec![],
        folder: folder.to_owned(),
    }
}

fn dist() -> PathBuf {
    environment::path("FARRIER_DIST")
}

fn boot(hardware: &Hardware, arguments: &[&str], parameters: &str) -> CommandedAgent {
    let arguments: Vec<_> = arguments.iter().map(|one| (*one).to_owned()).collect();
    CommandedAgent::boot(hardware, &arguments, &dist(), parameters).unwrap()
}

/// A card asks for its firmware when its link is set up.
#[test]
fn vm_a_card_without_its_firmware_is_one_line_that_names_the_file() {
    let folder = TempDir::new().unwrap();
    let hardware = hardware(folder.path());
    let card = ["-netdev", "user,id=second,net=10.0.3.0/24", "-device", "i82551,netdev=second,romfile="];
    let _agent = boot(&hardware, &card, "");
    let line = "the firmware e100/d102e_ucode.bin is missing: pack it with farrier-image build --firmware";
    hardware.console().wait_for(line, 0, PATIENCE).unwrap();
    assert_eq!(hardware.console().text().matches(line).count(), 1);
}

#[test]
fn vm_an_image_that_memory_cannot_hold_is_refused_before_anything_is_written() {
    let folder = TempDir::new().unwrap();
    let hardware = hardware(folder.path());
    // Pages of two MiB that nobody can use for anything else.
    let agent = boot(&hardware, &[], "hugepages=42");
    let image = instance::image().unwrap();
    let server = ImageServer::start(vec![Reply::Body(image.clone().into())]).unwrap();
    let info = json!({
        "id": "image", "urls": [server.guest_url()], "os_hash_algo": "sha256", "disk_format": "qcow2",
        "os_hash_value": instance::sha256(&image),
    });
    let params = json!({
        "step": {"step": "write_image", "interface": "deploy", "args": {"image_info": info}},
        "node": {"uuid": NODE, "properties": {}},
        "ports": [],
    });
    agent.order("deploy.execute_deploy_step", &params).unwrap();
    let error = agent.wait_for_failure(PATIENCE).unwrap().to_string();
    assert!(error.contains("too little memory: this image takes 64 MiB"), "{error}");
    assert_eq!(server.requests(), 0, "the image was asked for");
    assert_eq!(fs::metadata(folder.path().join("disk")).unwrap().blocks(), 0, "the disk was written");
    agent.succeed("standby.sync", &json!({}), PATIENCE).unwrap();
    let console = hardware.console().text();
    assert!(!console.contains("Out of memory") && !console.contains("ended; starting it again"), "{console}");
}

#[test]
fn vm_a_boot_medium_that_ends_too_early_is_told_and_tried_again() {
    let folder = TempDir::new().unwrap();
    let content = folder.path().join("content/openstack/latest");
    fs::create_dir_all(&content).unwrap();
    let text = format!("{{\"links\": []{}}}", " ".repeat(MUCH));
    fs::write(content.join("network_data.json"), text).unwrap();
    let medium = folder.path().join("boot.iso");
    media::iso(&medium, "config-2", "ab-12", &folder.path().join("content")).unwrap();
    // Its folders are there, and half of the file is not.
    let length = fs::metadata(&medium).unwrap().len();
    File::options().write(true).open(&medium).unwrap().set_len(length - MUCH as u64 / 2).unwrap();
    let mut hardware = hardware(folder.path());
    hardware.media.push(Medium::Optical(medium));
    let parameters = "console=ttyS0 ipa-api-url=http://10.0.2.2:1 boot_method=vmedia ir_pub_id=ab-12";
    let _machine = hardware.boot(Boot::Ramdisk(&dist(), parameters)).unwrap();
    let (console, line) = (hardware.console(), "virtual medium /dev/sr0 cannot be read");
    console.wait_for(line, 0, PATIENCE).unwrap();
    console.wait_for("attach it again through the BMC", 0, PATIENCE).unwrap();
    console.wait_for(line, console.length(), PATIENCE).unwrap();
    // What the medium would have said may be what the machine must not do without.
    assert!(!console.text().contains("asking the conductor"), "{}", console.text());
}
