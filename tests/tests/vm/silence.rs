//! Machines that stay silent, of each of which `farrier explain` names the cause.

use farrier_tests::conductor::lab::{Lab, Machine};
use farrier_tests::environment;
use farrier_tests::machine::Firmware;
use farrier_tests::machine::monitor::Monitor;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// The agent's doctor speaks as soon as a lease of an emulated machine is late.
const SOON: &str = "kernel_append_params=farrier-doctor-after=12 ipa-lldp-timeout=2";
/// Seconds that a machine is waited for: enough for an emulated one that shares its processor to examine itself.
const TIMEOUT: &str = "110";

/// How long the kernel of an emulated machine may take to panic.
const PANIC: Duration = Duration::from_secs(100);

struct Silent {
    name: &'static str,
    /// Parts of the cause as it is told.
    cause: &'static [&'static str],
}

const UNPLUGGED: Silent =
    Silent { name: "unplugged", cause: &["eth0: no carrier", "on the console: link", "port of the switch"] };
const PANICKED: Silent = Silent {
    name: "panicked",
    cause: &[
        "the kernel of the ramdisk panicked",
        "No working init found",
        "kernel and ramdisk belong together",
    ],
};
const MISLED: Silent = Silent {
    name: "misled",
    cause: &["10.0.2.2:1 refuses the connection", "on the console: tcp", "Start the conductor"],
};

fn enrol(lab: &Lab, silent: &Silent, number: u8, dist: &Path, driver_info: &[String]) {
    let machine = Machine {
        name: silent.name.into(),
        mac: format!("52:54:00:fa:00:{number:02x}"),
        dist: dist.to_owned(),
        firmware: Firmware::Bios,
        memory_mib: 256,
        disks: vec![],
        driver_info: driver_info.to_vec(),
        properties: vec![],
    };
    lab.enrol(&machine).unwrap();
    lab.order(&["node", "manage", silent.name]).unwrap();
}

/// Kernel and ramdisk, of which hardly anything was loaded.
fn torn(dist: &Path, folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    fs::copy(dist.join("vmlinuz"), folder.join("vmlinuz")).unwrap();
    let ramdisk = fs::read(dist.join("initramfs.img")).unwrap();
    fs::write(folder.join("initramfs.img"), &ramdisk[..64 << 10]).unwrap();
}

/// What orders a machine that is being switched on.
fn monitor(lab: &Lab, name: &str) -> Monitor {
    let node = lab.node(name).unwrap();
    let folder = lab.folder().join("state").join(node["uuid"].as_str().unwrap());
    Monitor::connect(&folder.join("control.sock")).unwrap()
}

/// A machine without a link, one whose ramdisk panics, and one that was told a wrong address of its conductor.
#[test]
fn vm_the_cause_of_each_of_three_silent_machines_is_explained() {
    let (folder, dist) = (TempDir::new().unwrap(), environment::path("FARRIER_DIST"));
    let part = folder.path().join("part");
    torn(&dist, &part);
    let settings = ["--clean-callback-timeout", TIMEOUT];
    let lab = Lab::start(&environment::path("FARRIER_BIN"), folder.path(), &settings).unwrap();
    enrol(&lab, &UNPLUGGED, 0x51, &dist, &[SOON.to_owned()]);
    enrol(&lab, &PANICKED, 0x52, &part, &[]);
    enrol(&lab, &MISLED, 0x53, &dist, &[format!("{SOON} ipa-api-url=http://10.0.2.2:1")]);
    thread::scope(|scope| {
        for silent in [UNPLUGGED, PANICKED, MISLED] {
            let lab = &lab;
            scope.spawn(move || {
                let Silent { name, cause } = silent;
                let ended = lab.order(&["node", "provide", name]);
                let failed = ended.expect_err(&lab.console(name).text()).to_string();
                let told = lab.order(&["explain", name]).unwrap();
                let line = told.lines().find(|line| line.starts_with("Cause, as it seems: "));
                let line = line.unwrap_or_else(|| panic!("{told}\n{failed}\n{}", lab.console(name).tail()));
                for part in cause {
                    assert!(line.contains(part), "{name}: {part:?} is not in {line}");
                }
                assert!(failed.contains(cause[0]), "{name}: {failed}");
            });
        }
        monitor(&lab, UNPLUGGED.name).execute("set_link", &json!({"name": "net0", "up": false})).unwrap();
        // A kernel that has panicked does nothing any more, and takes a whole processor for it.
        lab.console(PANICKED.name).wait_for("Kernel panic", 0, PANIC).unwrap();
        monitor(&lab, PANICKED.name).execute("stop", &json!({})).unwrap();
    });
}
