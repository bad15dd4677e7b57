//! The write path on emulated disks: images larger than the memory, and disks that fail or go away.

use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::agent::stub_conductor::NODE;
use farrier_tests::environment;
use farrier_tests::images::instance::sha256;
use farrier_tests::images::server::{ImageServer, Reply};
use farrier_tests::machine::monitor::Monitor;
use farrier_tests::machine::{Hardware, free_port};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const DISK: u64 = 5 << 30;
/// Longest time of a deployment on a busy machine.
const LIMIT: Duration = Duration::from_secs(900);
const POLL: Duration = Duration::from_millis(100);
/// Where a disk that fails does so: in data of the image, and in a hole of it.
const BAD: u64 = 40 * MIB;
const BAD_HOLE: u64 = BAD + MIB / 2;
/// A disk that has no command for zeros, drops no blocks, and is read instead.
const ATA: &str = "ATA";

/// A machine with disks on a SCSI bus, and perhaps one on another, all with old content.
struct Stable {
    agent: CommandedAgent,
    hardware: Hardware,
    folder: TempDir,
}

impl Stable {
    /// Disks by serial number, with the rules by which QEMU makes them fail.
    fn new(disks: &[(&str, Value)]) -> Self {
        let folder = TempDir::new().unwrap();
        let mut arguments = vec!["-device".to_owned(), "virtio-scsi-pci,id=scsi".to_owned()];
        for (serial, rules) in disks {
            let file = disk_file(folder.path(), serial);
            File::create(&file).unwrap().set_len(DISK).unwrap();
            let image = json!({"driver": "file", "filename": file});
            let mut failing = json!({"driver": "blkdebug", "image": image});
            failing.as_object_mut().unwrap().extend(rules.as_object().unwrap().clone());
            let drive = json!({"driver": "raw", "node-name": serial, "file": failing});
            let model =
                if *serial == ATA { "ide-hd,discard_granularity=0,bus=ide.0" } else { "scsi-hd,bus=scsi.0" };
            let device = format!("{model},drive={serial},serial={serial},id=device-{serial}");
            arguments.extend(["-blockdev".to_owned(), drive.to_string(), "-device".to_owned(), device]);
        }
        arguments.extend(Monitor::arguments(&folder.path().join("qmp")));
        let agent_port = free_port().unwrap();
        let hardware = Hardware {
            mac: "52:54:00:fa:00:31".into(),
            agent_port,
            keyboard_port: free_port().unwrap(),
            disks: vec![],
            media: vec![],
            folder: folder.path().into(),
        };
        let parameters =
            "ipa-image-download-connection-retries=1 ipa-image-download-connection-retry-interval=0.2";
        let dist = environment::path("FARRIER_DIST");
        let agent = CommandedAgent::boot(&hardware, &arguments, &dist, parameters).unwrap();
        Self { agent, hardware, folder }
    }

    fn file(&self, serial: &str) -> PathBuf {
        disk_file(self.folder.path(), serial)
    }

    /// Orders the deploy step that writes an image to the disk with this serial number.
    fn begin(&self, serial: &str, image: &Value) {
        let old = vec![0xbb; 64 * MIB as usize];
        let file = File::options().write(true).open(self.file(serial)).unwrap();
        for place in [0, 1 << 30, 3 << 30] {
            file.write_all_at(&old, place).unwrap();
        }
        file.write_all_at(&old[..MIB as usize], DISK - MIB).unwrap();
        let params = json!({
            "step": {"step": "write_image", "interface": "deploy", "args": {"image_info": image}},
            "node": {"uuid": NODE, "properties": {"root_device": {"serial": serial}}},
            "ports": [],
        });
        self.agent.order("deploy.execute_deploy_step", &params).unwrap();
    }

    fn deploy(&self, serial: &str, image: &Value) -> Value {
        self.begin(serial, image);
        self.agent.wait_for_success(LIMIT).unwrap()["deploy_result"]["report"].take()
    }

    /// Waits for the end of a deployment that fails, and returns its error.
    fn failure(&self) -> String {
        self.agent.wait_for_failure(LIMIT).unwrap().to_string()
    }

    /// No program finds a table on the disk, nor anything in the places of one.
    #[track_caller]
    fn assert_no_table(&self, serial: &str) {
        let path = self.file(serial);
        let file = File::open(&path).unwrap();
        for place in [0, DISK - MIB] {
            let mut end = vec![0xff; MIB as usize];
            file.read_exact_at(&mut end, place).unwrap();
            assert!(end.iter().all(|byte| *byte == 0), "there is something in the MiB at {place}");
        }
        let found = Command::new("blkid").args(["-p", "-o", "export"]).arg(&path).output().unwrap();
        assert!(found.stdout.is_empty(), "{}", String::from_utf8_lossy(&found.stdout));
    }
}

fn disk_file(folder: &Path, serial: &str) -> PathBuf {
    folder.join(format!("{serial}.img"))
}

fn qemu_img(arguments: &[&str]) -> String {
    let output = Command::new("qemu-img").args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// A disk of `size` with a partition table, and data in the first quarter of each of eight parts.
fn make_raw(path: &Path, size: u64, data: u64) {
    let file = File::create(path).unwrap();
    file.set_len(size).unwrap();
    let mut state = 1_u64;
    let mut block = vec![0; MIB as usize];
    for number in 0..data / MIB {
        for word in block.chunks_exact_mut(8) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Half of it is the same everywhere, so that there is something to pack.
            word[..4].copy_from_slice(&(state >> 32).to_le_bytes()[..4]);
        }
        let per_part = data / MIB / 8;
        let place = number / per_part * (size / 8) + number % per_part * MIB;
        file.write_all_at(&block, place).unwrap();
    }
    let mut table = [0; 512];
    table[446..462].copy_from_slice(&[0, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0, 1, 0]);
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    file.write_all_at(&table, 0).unwrap();
}

fn image_info(server: &ImageServer, content: &Path, format: &str) -> Value {
    let digest = sha256(&fs::read(content).unwrap());
    json!({"id": "image", "urls": [server.guest_url()], "os_hash_algo": "sha256", "os_hash_value": digest,
        "disk_format": format})
}

#[test]
fn vm_s12_a_qcow2_of_four_gib_fits_through_256_mib_of_memory() {
    let stable = Stable::new(&[("BIG", json!({}))]);
    let path = |name: &str| stable.folder.path().join(name).display().to_string();
    make_raw(Path::new(&path("raw")), 4 << 30, 288 * MIB);
    // Every other pair of content and server is in the unit tests, in memory (`x48_every_variant…`).
    for (options, is_by_ranges) in [(&[][..], true), (&["-c"], false)] {
        let qcow2 = path("image.qcow2");
        qemu_img(&[&["convert", "-f", "raw", "-O", "qcow2"], options, &[&path("raw"), &qcow2]].concat());
        let reply = match is_by_ranges {
            true => Reply::File(PathBuf::from(&qcow2)),
            false => Reply::Body(fs::read(&qcow2).unwrap().into()),
        };
        let server = ImageServer::start(vec![reply]).unwrap();
        let report = stable.deploy("BIG", &image_info(&server, Path::new(&qcow2), "qcow2"));
        let disk = path("BIG.img");
        let is_same = qemu_img(&["compare", "-U", "-f", "raw", "-F", "raw", &path("raw"), &disk]);
        assert!(is_same.contains("identical"), "{is_same}");
        assert!(report["bytes_zeroed"].as_u64().unwrap() > 3 << 30, "{report}");
        println!("{options:?} {report}");
    }
}

#[test]
fn vm_d06_d09_x09_a_disk_that_fails_fails_the_step_unless_zeros_can_be_written_instead() {
    let inject = |event: &str, kind: &str| json!({"event": event, "iotype": kind, "errno": 5});
    let at = |place: u64, mut rule: Value| {
        rule["sector"] = json!(place / 512);
        json!({"inject-error": [rule]})
    };
    let mut second_flush = inject("flush_to_disk", "flush");
    second_flush["state"] = json!(2);
    let after_begin = json!({"event": "flush_to_disk", "state": 1, "new_state": 2});
    let failing = [
        ("WRITE", at(BAD, inject("none", "write")), "writing"),
        ("FLUSH", json!({"inject-error": [second_flush], "set-state": [after_begin]}), "flushing"),
        ("READ", at(BAD, inject("none", "read")), "reading"),
    ];
    let refusals = ["discard", "write-zeroes"].map(|kind| inject("none", kind));
    let saving = [
        ("REFUSES", json!({"inject-error": refusals}), "unmapping"),
        (ATA, at(BAD_HOLE, inject("none", "read")), "reading"),
    ];
    let disks: Vec<_> =
        failing.iter().chain(&saving).map(|(serial, rules, _)| (*serial, rules.clone())).collect();
    let stable = Stable::new(&disks);
    let begin = |serial: &str, raw: &Path| {
        let server = ImageServer::start(vec![Reply::File(raw.to_owned())]).unwrap();
        stable.begin(serial, &image_info(&server, raw, "raw"));
        server
    };
    let raw = stable.folder.path().join("raw");
    make_raw(&raw, 64 * MIB, 64 * MIB);
    for (serial, _, action) in failing {
        let server = begin(serial, &raw);
        let error = stable.failure();
        let console = stable.hardware.console().tail();
        assert!(error.contains("/dev/sd") && error.contains(action), "{serial}: {error}\n{console}");
        assert_eq!(server.requests(), 1, "another request does not make a disk better");
        stable.assert_no_table(serial);
    }
    make_raw(&raw, 256 * MIB, 64 * MIB);
    for (serial, _, action) in saving {
        let _server = begin(serial, &raw);
        stable.agent.wait_for_success(LIMIT).unwrap();
        let console = stable.hardware.console().text();
        assert!(console.contains("writing zeros instead") && console.contains(action), "{serial}: {console}");
        let mut written = vec![0; 256 * MIB as usize];
        File::open(stable.file(serial)).unwrap().read_exact_at(&mut written, 0).unwrap();
        assert!(written == fs::read(&raw).unwrap(), "{serial}: the disk differs from the image");
    }
}

#[test]
fn vm_a_disk_that_vanishes_fails_the_step_and_the_agent_stays() {
    let stable = Stable::new(&[("GONE", json!({})), ("STAYS", json!({}))]);
    let raw = stable.folder.path().join("raw");
    make_raw(&raw, 512 * MIB, 512 * MIB);
    let server = ImageServer::start(vec![Reply::File(raw.clone())]).unwrap();
    stable.begin("GONE", &image_info(&server, &raw, "raw"));
    let started = Instant::now();
    while !fs::metadata(stable.file("GONE")).is_ok_and(|file| allocated(&file) > 256 * MIB) {
        assert!(started.elapsed() < LIMIT, "nothing is written:\n{}", stable.hardware.console().tail());
        std::thread::sleep(POLL);
    }
    let mut monitor = Monitor::connect(&stable.folder.path().join("qmp")).unwrap();
    monitor.execute("device_del", &json!({"id": "device-GONE"})).unwrap();
    let error = stable.failure();
    assert!(error.contains("/dev/sd"), "{error}");
    let mut small = vec![0; 4 * MIB as usize];
    File::open(&raw).unwrap().read_exact_at(&mut small, 0).unwrap();
    fs::write(&raw, &small).unwrap();
    let server = ImageServer::start(vec![Reply::File(raw.clone())]).unwrap();
    stable.deploy("STAYS", &image_info(&server, &raw, "raw"));
}

fn allocated(file: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(file) * 512
}
