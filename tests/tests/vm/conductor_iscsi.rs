//! The reference conductor writes the disk of an emulated machine, whose agent exports it.

use farrier_tests::conductor::lab::{Instance, Lab, Machine};
use farrier_tests::environment;
use farrier_tests::images::instance::{GREETING, image, sha256};
use farrier_tests::images::server::{ImageServer, Pace, Reply};
use farrier_tests::machine::{Firmware, free_port};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const NODE: &str = "horse";
const DISK_BYTES: u64 = 64 << 20;
/// Longest time until a machine says what it is, with an emulated processor.
const PATIENCE: Duration = Duration::from_secs(180);

/// A machine with an empty disk, which is a file in the folder.
fn machine(folder: &Path) -> Machine {
    let disk = folder.join("disk.img");
    fs::File::create(&disk).unwrap().set_len(DISK_BYTES).unwrap();
    Machine {
        name: NODE.into(),
        mac: "52:54:00:fa:00:43".into(),
        dist: environment::path("FARRIER_DIST"),
        firmware: Firmware::Bios,
        memory_mib: 256,
        disks: vec![(disk, "ROOT".into())],
        driver_info: vec![format!("iscsi_portal_port={}", free_port().unwrap())],
        properties: vec![r#"root_device={"serial": "ROOT"}"#.into()],
    }
}

#[test]
fn vm_a_small_image_is_deployed_by_iscsi_and_boots() {
    let folder = TempDir::new().unwrap();
    let lab = Lab::start(&environment::path("FARRIER_BIN"), folder.path(), &[]).unwrap();
    lab.enrol_with(&machine(folder.path()), &["deploy=iscsi"]).unwrap();
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
    assert!(fs::read(folder.path().join("disk.img")).unwrap()[..image.len()] == image[..]);
    let node = lab.node(NODE).unwrap();
    assert!(node["driver_internal_info"].get("iscsi_target").is_none(), "{node}");
    let log = fs::read_to_string(lab.folder().join("conductor.log")).unwrap();
    assert!(!log.contains("chap_password"), "{log}");
}

/// The conductor that goes on in its place closes what was open, and writes from the beginning.
#[test]
fn vm_f60_a_conductor_that_is_killed_while_it_writes_goes_on_after_its_next_start() {
    let folder = TempDir::new().unwrap();
    let port = free_port().unwrap();
    let listen = format!("127.0.0.1:{port}");
    let mut lab = Lab::start_at(&listen, &environment::path("FARRIER_BIN"), folder.path(), &[]).unwrap();
    lab.enrol_with(&machine(folder.path()), &["deploy=iscsi"]).unwrap();
    let image = Arc::new(image().unwrap());
    let pace = Pace::new(image.len() / 2, 1);
    let replies = vec![Reply::Paced(Arc::clone(&image), Arc::clone(&pace)), Reply::Body(Arc::clone(&image))];
    let server = ImageServer::start(replies).unwrap();
    let instance = Instance { url: server.url(), sha256: &sha256(&image), config_drive: None };
    let disk = folder.path().join("disk.img");
    let is_half_written = || fs::read(&disk).unwrap()[1 << 20..2 << 20] == image[1 << 20..2 << 20];
    let conductor = Pid::from_raw(lab.process_id().cast_signed());
    let cut_off = lab.deploy(NODE, &instance, |event| {
        if event.event == "write_started" {
            let end = Instant::now() + PATIENCE;
            while !is_half_written() {
                assert!(Instant::now() < end, "nothing is written");
                thread::sleep(Duration::from_millis(200));
            }
            kill(conductor, Signal::SIGKILL).unwrap();
        }
    });
    cut_off.unwrap_err();
    lab.start_again().unwrap();
    pace.end();
    lab.console(NODE).wait_for(GREETING, 0, PATIENCE).unwrap();
    assert!(fs::read(&disk).unwrap()[..image.len()] == image[..]);
    let node = lab.node(NODE).unwrap();
    assert_eq!((&node["provision_state"], &node["last_error"]), (&"active".into(), &Value::Null), "{node}");
    assert!(node["driver_internal_info"].get("iscsi_target").is_none(), "{node}");
}

/// Whether a printed command line does what it says, in this folder.
fn runs(line: &str, folder: &Path) -> bool {
    Command::new("sh").args(["-c", line]).current_dir(folder).status().unwrap().success()
}

/// The command lines that are printed are run as they are.
#[test]
fn vm_f60_a_disk_is_written_and_kept_by_hand_and_given_back() {
    let folder = TempDir::new().unwrap();
    let lab = Lab::start(&environment::path("FARRIER_BIN"), folder.path(), &[]).unwrap();
    lab.enrol(&machine(folder.path())).unwrap();
    lab.order(&["node", "manage", NODE]).unwrap();
    let early = lab.order(&["disk", "export", NODE]).unwrap_err().to_string();
    assert!(early.contains("no agent answers on the machine of node horse"), "{early}");
    lab.order(&["node", "clean", NODE, "--steps", r#"[{"interface": "deploy", "step": "hold"}]"#]).unwrap();
    let secrets = folder.path().join("secrets");
    let kept = secrets.display().to_string();
    let printed = lab.order(&["disk", "export", NODE, "--secrets", &kept]).unwrap();
    let secret = fs::read_to_string(secrets.join("secret")).unwrap();
    assert!(!printed.contains(&secret), "{printed}");
    let lines = |part: &str| printed.lines().find(|line| line.starts_with("qemu-img") && line.contains(part));
    let (write, keep) = (lines(" IMAGE ").unwrap(), lines("horse.qcow2").unwrap());
    let image = image().unwrap();
    fs::write(folder.path().join("image"), &image).unwrap();
    assert!(runs(&write.replace(" IMAGE ", " image "), folder.path()), "{write}");
    assert!(fs::read(folder.path().join("disk.img")).unwrap()[..image.len()] == image[..]);
    assert!(runs(keep, folder.path()), "{keep}");
    assert!(runs("qemu-img compare -f qcow2 -F raw horse.qcow2 disk.img", folder.path()));

    let refused = lab.order(&["node", "unhold", NODE]).unwrap_err().to_string();
    assert!(refused.contains("run `farrier disk release horse` first"), "{refused}");
    assert!(lab.order(&["explain", NODE]).unwrap().contains("farrier disk release horse"));
    lab.order(&["disk", "release", NODE]).unwrap();
    assert!(!runs(keep, folder.path()), "it is exported still");
    lab.order(&["node", "unhold", NODE]).unwrap();
    assert_eq!(lab.node(NODE).unwrap()["provision_state"], "manageable");
}
