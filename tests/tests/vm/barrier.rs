//! Machines whose devices come up late, or not at all, and what their agents do meanwhile. Their conductor knows
//! them by the last of several cards.

use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::agent::stub_conductor::{NODE, StubConductor};
use farrier_tests::environment;
use farrier_tests::images::instance;
use farrier_tests::images::server::{ImageServer, Reply};
use farrier_tests::machine::monitor::Monitor;
use farrier_tests::machine::{self, Boot, Firmware, Hardware, free_port};
use farrier_tests::ramdisk::{self, Addition};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(240);
const POLL: Duration = Duration::from_millis(500);
const DISK_BYTES: usize = 16 << 20;
const FIRST: &str = "52:54:00:fa:00:71";
const SECOND: &str = "52:54:00:fa:00:72";
const ENROLLED: &str = "52:54:00:fa:00:73";
/// Where something is plugged in while the machine runs.
const BAY: &str = "pcie-root-port,id=bay,chassis=1";
/// The longest model that a SATA disk can have, of which the kernel shows a part.
const MODEL: &str = "FARRIER 7LH960HAJR-00005 ENTERPRISE 960G";

/// A machine with cards of three kinds.
struct Stable {
    hardware: Hardware,
    arguments: Vec<String>,
    folder: TempDir,
}

impl Stable {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let hardware = Hardware {
            mac: FIRST.into(),
            agent_port: free_port().unwrap(),
            keyboard_port: free_port().unwrap(),
            disks: vec![],
            media: vec![],
            folder: folder.path().into(),
        };
        let arguments = Monitor::arguments(&folder.path().join("monitor")).to_vec();
        let mut stable = Self { hardware, arguments, folder };
        stable.add("-netdev", "user,id=second,net=10.0.3.0/24");
        stable.add("-device", &format!("e1000e,netdev=second,romfile=,mac={SECOND}"));
        stable.add("-netdev", "user,id=enrolled,net=10.0.4.0/24");
        stable.add("-device", BAY);
        stable
    }

    /// One whose enrolled card is there at once, though it comes last.
    fn with_all_cards() -> Self {
        let mut stable = Self::new();
        stable.add("-device", &format!("vmxnet3,netdev=enrolled,romfile=,mac={ENROLLED}"));
        stable
    }

    fn add(&mut self, kind: &str, what: &str) {
        self.arguments.extend([kind.to_owned(), what.to_owned()]);
    }

    /// Makes a disk in use, for a device to be added.
    fn make_disk(&mut self, serial: &str) {
        fs::write(self.disk(serial), vec![0x5a; DISK_BYTES]).unwrap();
        self.add("-drive", &machine::drive(serial, &self.disk(serial)));
    }

    fn disk(&self, serial: &str) -> PathBuf {
        self.folder.path().join(serial)
    }

    fn boot(&self, dist: &Path, parameters: &str) -> CommandedAgent {
        let conductor = StubConductor::start_enrolled(ENROLLED).unwrap();
        let firmware = Firmware::Bios;
        CommandedAgent::boot_under(firmware, conductor, &self.hardware, &self.arguments, dist, parameters)
            .unwrap()
    }

    fn plug_in(&self, device: &Value) {
        let mut monitor = Monitor::connect(&self.folder.path().join("monitor")).unwrap();
        monitor.execute("device_add", device).unwrap();
    }
}

fn erase_metadata(agent: &CommandedAgent, properties: Value) -> Value {
    let step = json!({"step": "erase_devices_metadata", "interface": "deploy"});
    let params = json!({"step": step, "node": {"uuid": NODE, "properties": properties}, "ports": []});
    agent.order("clean.execute_clean_step", &params).unwrap();
    agent.wait_for_end(PATIENCE).unwrap()
}

/// Why the last command failed.
fn reason(ended: &Value) -> String {
    assert_eq!(ended["command_status"], "FAILED", "{ended}");
    ended["command_error"].to_string()
}

/// Deploys an image to the disk with this serial number, which `meanwhile` may bring.
fn assert_deployed(stable: &Stable, agent: &CommandedAgent, serial: &str, meanwhile: impl FnOnce()) {
    let image = instance::image().unwrap();
    let server = ImageServer::start(vec![Reply::Body(Arc::new(image.clone()))]).unwrap();
    let info = json!({
        "id": "image", "urls": [server.guest_url()], "os_hash_algo": "sha256", "disk_format": "raw",
        "os_hash_value": instance::sha256(&image),
    });
    let params = json!({
        "step": {"step": "write_image", "interface": "deploy", "args": {"image_info": info}},
        "node": {"uuid": NODE, "properties": {"root_device": {"serial": serial}}},
        "ports": [],
    });
    agent.order("deploy.execute_deploy_step", &params).unwrap();
    meanwhile();
    agent.wait_for_success(PATIENCE).unwrap();
    assert!(fs::read(stable.disk(serial)).unwrap()[..image.len()] == image, "{serial} is not the image");
}

/// Serial numbers of the disks in an inspection's data.
fn serials(data: &Value) -> BTreeSet<&str> {
    let disks = data["inventory"]["disks"].as_array().unwrap();
    disks.iter().filter_map(|disk| disk["serial"].as_str()).collect()
}

#[test]
fn vm_x03_x10_x30_a_controller_without_a_driver_keeps_a_machine_from_being_called_clean() {
    let mut stable = Stable::with_all_cards();
    stable.add("-device", "am53c974");
    let agent = stable.boot(&environment::path("FARRIER_DIST"), "module_blacklist=am53c974");
    let told = reason(&erase_metadata(&agent, json!({})));
    assert!(
        told.contains("storage controller 0000:00:") && told.contains("(1022:2020) has no driver"),
        "{told}"
    );
    let skipped = json!({"farrier_skip_controllers": ["1022:2020"]});
    let told = reason(&erase_metadata(&agent, skipped.clone()));
    assert!(told.contains("no disk is seen"), "{told}");
    let diskless = json!({"farrier_skip_controllers": ["1022:2020"], "farrier_diskless": true});
    let ended = erase_metadata(&agent, diskless);
    assert_eq!(ended["command_status"], "SUCCEEDED", "{ended}");
}

#[test]
fn vm_x02_a_disk_that_takes_long_is_named_until_it_is_there() {
    let mut stable = Stable::with_all_cards();
    stable.make_disk("HOT");
    // A SCSI host of the kernel itself, each of whose commands takes its time.
    let additions = [
        Addition::Module("scsi_debug"),
        Addition::Text("/etc/modules-load.d/scsi_debug.conf", "scsi_debug\n"),
    ];
    let dist = ramdisk::build(stable.folder.path(), &additions).unwrap();
    // A command takes two fifths of a second (HZ is 250), and there are many: more than a busy host needs to boot.
    let agent = stable.boot(&dist, "scsi_debug.delay=100 farrier-device-wait-timeout=1");
    let (started, mut is_named) = (Instant::now(), false);
    loop {
        let ended = erase_metadata(&agent, json!({}));
        if ended["command_status"] == "SUCCEEDED" {
            break;
        }
        let told = reason(&ended);
        assert!(told.contains("nothing is erased: still waited for"), "{ended}");
        // In a machine that is slow itself, drivers come first.
        is_named |= told.contains("scsi_debug");
        assert!(started.elapsed() < PATIENCE, "{ended}");
    }
    assert!(is_named, "the disk was not waited for");

    // No fact tells of a disk that is not plugged in yet: its hint does.
    let start = stable.hardware.console().length();
    assert_deployed(&stable, &agent, "HOT", || {
        stable.hardware.console().wait_for("waiting for the root disk", start, PATIENCE).unwrap();
        stable.plug_in(&json!({"driver": "virtio-blk-pci", "bus": "bay", "drive": "HOT", "serial": "HOT"}));
    });
}

/// The disks appear at once, and 5, 15 and 40 s after their drivers were loaded; the card appears after them.
#[test]
fn vm_x02_x10_x30_what_comes_40_s_late_is_inspected_cleaned_and_deployed_on_the_first_try() {
    let mut stable = Stable::new();
    let disks = ["ATA", "USB5", "SCSI15", "SCSI40"];
    disks.iter().for_each(|serial| stable.make_disk(serial));
    for device in [
        &format!("ide-hd,bus=ide.0,drive=ATA,serial=ATA,model={MODEL}"),
        "qemu-xhci,id=usb",
        "usb-storage,bus=usb.0,drive=USB5,serial=USB5",
        "lsi53c895a,id=slow",
        "scsi-hd,bus=slow.0,drive=SCSI15,serial=SCSI15",
        "am53c974,id=slower",
        "scsi-hd,bus=slower.0,drive=SCSI40,serial=SCSI40",
    ] {
        stable.add("-device", device);
    }
    let conductor = StubConductor::start_enrolled(ENROLLED).unwrap();
    let url = conductor.guest_url();
    // Drivers of SCSI buses wait for these after a reset, one after the other.
    let parameters = format!(
        "console=ttyS0 ipa-api-url={url} ipa-inspection-collectors=default \
         usb-storage.delay_use=5 sym53c8xx.settle=15 esp_scsi.esp_bus_reset_settle=25"
    );
    let dist = environment::path("FARRIER_DIST");
    let boot = Boot::Ramdisk(&dist, &parameters);
    let mut machine = stable.hardware.boot_with(boot, &stable.arguments).unwrap();

    let mut inspected = || {
        let started = Instant::now();
        while started.elapsed() < PATIENCE && machine.is_on().unwrap() {
            if let Some(data) = conductor.wait_for("/v1/continue_inspection", POLL) {
                return data;
            }
        }
        panic!("no data; the console:\n{}", stable.hardware.console().tail())
    };
    let data = inspected();
    assert_eq!(serials(&data), BTreeSet::from(disks), "{data}");
    assert!(data.to_string().contains(MODEL), "{data}");
    let console = stable.hardware.console().text();
    assert!(console.contains("the driver am53c974 is being loaded"), "nothing was late: {console}");
    assert!(
        !console.contains("has no driver"),
        "a driver that waits for another one is called missing: {console}"
    );
    // Such a machine is not known; the data is taken once its card is there.
    let card =
        json!({"driver": "vmxnet3", "bus": "bay", "netdev": "enrolled", "mac": ENROLLED, "romfile": ""});
    stable.plug_in(&card);
    let data = inspected();
    assert!(data["inventory"]["interfaces"].to_string().contains(ENROLLED), "{data}");
    assert_eq!(serials(&data), BTreeSet::from(disks), "{data}");

    let agent = CommandedAgent::meet(machine, &stable.hardware, conductor).unwrap();
    let ended = erase_metadata(&agent, json!({}));
    assert_eq!(ended["command_status"], "SUCCEEDED", "{ended}");
    for serial in disks {
        assert!(fs::read(stable.disk(serial)).unwrap()[..4096] == [0; 4096], "{serial} is not clean");
    }
    assert_deployed(&stable, &agent, "SCSI40", || ());
}
