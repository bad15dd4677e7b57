//! Machines whose devices are at different points of coming up, as trees of sysfs.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;

/// A machine without devices.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.0.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Has a link at `path` lead to the folder at `target`, which is made.
    fn link(&self, path: &str, target: &str) {
        let (link, target) = (self.0.path().join(path), self.0.path().join(target));
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        fs::create_dir_all(&target).unwrap();
        symlink(target, link).unwrap();
    }

    /// A device on PCI with a driver that is a module.
    fn device(&self, address: &str, driver: &str) -> String {
        let device = format!("sys/devices/pci0000:00/{address}");
        if !self.0.path().join(format!("sys/bus/pci/drivers/{driver}/module")).exists() {
            self.link(&format!("sys/bus/pci/drivers/{driver}/module"), &format!("sys/module/{driver}"));
        }
        self.link(&format!("{device}/driver"), &format!("sys/bus/pci/drivers/{driver}"));
        device
    }

    fn host(&self, number: u32, address: &str, driver: &str, state: &str) {
        let entry = format!("{}/host{number}/scsi_host/host{number}", self.device(address, driver));
        self.write(&format!("{entry}/state"), state);
        self.link(&format!("sys/class/scsi_host/host{number}"), &entry);
    }

    fn loading(&self, waiting: usize, modules: &[&str]) {
        let modules = modules.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(",");
        self.write("run/farrier/loading.json", &format!(r#"{{"waiting":{waiting},"modules":[{modules}]}}"#));
    }

    fn told(&self) -> Vec<String> {
        awaited(self.0.path()).iter().map(ToString::to_string).collect()
    }
}

#[test]
fn x02_g08_what_is_still_coming_up_is_named_as_an_operator_looks_for_it() {
    type Set = fn(&Machine);
    let rows: [(Set, &[&str]); 12] = [
        (|_| (), &[]),
        (|machine| machine.host(0, "0000:00:1f.2", "ahci", "running"), &[]),
        (|machine| machine.write("sys/module/ext4/initstate", "live\n"), &[]),
        (
            |machine| machine.write("sys/module/mlx5_core/initstate", "coming\n"),
            &["the driver mlx5_core is being loaded"],
        ),
        (|machine| machine.loading(2, &[]), &["drivers are looked for, for 2 devices more"]),
        (
            |machine| {
                machine.loading(1, &["mpt3sas", "e1000e"]);
                machine.host(2, "0000:03:00.0", "mpt3sas", "running");
                machine.host(0, "0000:00:1f.2", "ahci", "running");
            },
            &[
                "scsi host2 (mpt3sas, 0000:03:00.0) is scanning",
                "the driver e1000e is being loaded",
                "drivers are looked for, for one device more",
            ],
        ),
        (
            |machine| {
                // Both PID 1 and the kernel tell of it.
                machine.loading(0, &["lpfc"]);
                machine.write("sys/module/lpfc/initstate", "coming\n");
            },
            &["the driver lpfc is being loaded"],
        ),
        (
            |machine| machine.host(3, "0000:04:00.0", "hpsa", "recovery"),
            &["scsi host3 (hpsa, 0000:04:00.0) recovers from errors"],
        ),
        (
            |machine| {
                machine.host(2, "0000:03:00.0", "mpt3sas", "running");
                for (address, kind, has_driver, is_block) in [
                    ("2:0:0:0", "0", true, true),
                    ("2:0:1:0", "0", true, false),
                    ("2:0:2:0", "0", false, false),
                    ("2:0:3:0", "13", true, false),
                    // Host-managed zoned disks, and a tape.
                    ("2:0:4:0", "20", true, true),
                    ("2:0:5:0", "20", true, false),
                    ("2:0:6:0", "1", true, false),
                ] {
                    let device = format!("sys/bus/scsi/devices/{address}");
                    machine.write(&format!("{device}/type"), kind);
                    for (folder, is_there) in [("driver", has_driver), ("block", is_block)] {
                        if is_there {
                            fs::create_dir(machine.0.path().join(&device).join(folder)).unwrap();
                        }
                    }
                }
            },
            &[
                "disk 2:0:1:0 behind scsi host2 (mpt3sas, 0000:03:00.0) is being probed",
                "disk 2:0:5:0 behind scsi host2 (mpt3sas, 0000:03:00.0) is being probed",
            ],
        ),
        (
            |machine| {
                for (name, address, state) in [
                    ("nvme0", "0000:01:00.0", "live"),
                    ("nvme1", "0000:02:00.0", "resetting"),
                    ("nvme2", "0000:05:00.0", "dead"),
                ] {
                    let entry = format!("{}/nvme/{name}", machine.device(address, "nvme"));
                    machine.write(&format!("{entry}/state"), state);
                    machine.link(&format!("sys/class/nvme/{name}"), &entry);
                }
            },
            &["nvme1 (nvme, 0000:02:00.0) is resetting"],
        ),
        (
            |machine| {
                for (name, roles, state) in [
                    ("rport-5:0-0", "FCP Target", "Online"),
                    ("rport-5:0-1", "FCP Target", "Blocked"),
                    ("rport-5:0-2", "Directory Server", "Blocked"),
                ] {
                    let entry = format!("{}/host5/{name}", machine.device("0000:06:00.0", "lpfc"));
                    machine.write(&format!("{entry}/roles"), roles);
                    machine.write(&format!("{entry}/port_state"), state);
                    machine.link(&format!("sys/class/fc_remote_ports/{name}"), &entry);
                    fs::remove_file(machine.0.path().join("sys/devices/pci0000:00/0000:06:00.0/driver"))
                        .unwrap();
                }
                machine.device("0000:06:00.0", "lpfc");
            },
            &["rport-5:0-1 (lpfc, 0000:06:00.0) is a blocked port"],
        ),
        (
            |machine| machine.write("run/farrier/loading.json", "{"),
            &[
                "it is not known which drivers are being loaded: /run/farrier/loading.json cannot be read (EOF while \
               parsing an object at line 1 column 1)",
            ],
        ),
    ];
    for (number, (set, expected)) in rows.into_iter().enumerate() {
        let machine = Machine::new();
        set(&machine);
        assert_eq!(machine.told(), expected, "row {number}");
    }
}
