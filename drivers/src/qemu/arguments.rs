//! The argument vector of QEMU.

use super::accelerator::Accelerator;
use super::description::{Description, Network};
use super::disks::{Bus, Disk};
use super::firmware::Firmware;
use farrier_conductor::model::Node;
use serde_json::json;
use std::path::{Path, PathBuf};

/// The port that the agent listens on.
const AGENT_PORT: u16 = 9999;

/// Name of the network backend, for [`super::control`].
pub(super) const NETWORK_ID: &str = "net0";

/// What QEMU may not do: gain rights, start programs, change its priority. The argument of a machine whose operator
/// gives some of his own leaves that to him.
pub(super) const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";
const SANDBOX_OF_OPERATOR: &str = "on,obsolete=deny";

/// The files of a machine.
#[derive(Debug)]
pub(super) struct Paths {
    /// The variables of UEFI firmware.
    pub(super) vars: Option<PathBuf>,
    pub(super) console: PathBuf,
    /// Where QEMU listens to what is typed at the console.
    pub(super) keyboard: Option<PathBuf>,
    pub(super) pid: PathBuf,
    /// Where QEMU takes orders.
    pub(super) control: Option<PathBuf>,
    /// The config drive of an instance that is on no disk.
    pub(super) config_drive: Option<PathBuf>,
}

/// What a machine starts from.
#[derive(Debug)]
pub(super) enum Boot {
    /// Its disk.
    Disk,
    /// The network, by PXE.
    Network,
    /// The ramdisk, or an instance that is one, which QEMU loads itself.
    Ramdisk(RamdiskBoot),
    /// A medium.
    Iso(PathBuf),
}

/// The ramdisk, as QEMU loads it.
#[derive(Debug)]
pub(super) struct RamdiskBoot {
    pub(super) kernel: PathBuf,
    pub(super) ramdisk: PathBuf,
    pub(super) parameters: String,
}

/// The whole vector. The machine starts stopped and is let go through QMP on standard input; it ends
/// when the guest powers off and stays when the guest reboots.
pub(super) fn vector(
    node: &Node,
    description: &Description,
    accelerator: Accelerator,
    paths: &Paths,
    agent_port: u16,
    boot: &Boot,
) -> Vec<String> {
    let mut vector = Vec::new();
    let mut add = |words: &[&str]| vector.extend(words.iter().map(|word| (*word).to_owned()));
    add(&["-name", &node.label(), "-uuid", &node.uuid.to_string()]);
    add(&["-nodefaults", "-no-user-config", "-display", "none", "-S"]);
    add(&["-sandbox", if description.extra_args.is_empty() { SANDBOX } else { SANDBOX_OF_OPERATOR }]);
    let architecture = description.architecture;
    add(&["-machine", architecture.machine(paths.vars.is_some())]);
    match accelerator {
        Accelerator::Kvm => add(&["-accel", "kvm", "-cpu", "host"]),
        Accelerator::Tcg => add(&["-accel", "tcg,thread=multi", "-cpu", architecture.emulated_cpu()]),
    }
    add(&["-smp", &description.cpus.to_string(), "-m", &description.memory_mib.to_string()]);
    if let (Firmware::Uefi(firmware), Some(vars)) = (&description.firmware, &paths.vars) {
        add(&["-blockdev", &image("code", &firmware.code, "raw", true)]);
        add(&["-blockdev", &image("vars", vars, "raw", false)]);
    }
    add(&["-chardev", "stdio,id=qmp,signal=off", "-mon", "chardev=qmp,mode=control"]);
    add(&["-chardev", &console(paths), "-serial", "chardev:console"]);
    if let Some(control) = &paths.control {
        let socket = format!("socket,id=control,server=on,wait=off,path={}", escaped(control));
        add(&["-chardev", &socket, "-mon", "chardev=control,mode=control"]);
    }
    add(&["-pidfile", &paths.pid.to_string_lossy()]);
    add(&["-device", "virtio-rng-pci"]);
    add(&["-netdev", &netdev(description, agent_port)]);
    let mac = node.ports.first().map_or(String::new(), |port| format!(",mac={}", port.address));
    // Without an option ROM the firmware does not try to boot from the network.
    let start = if matches!(boot, Boot::Network) { architecture.network_start() } else { "romfile=" };
    add(&["-device", &format!("virtio-net-pci,netdev={NETWORK_ID},{start}{mac}")]);
    let medium = matches!(boot, Boot::Iso(_)).then(|| architecture.optical_bus());
    if description.disks.iter().map(|disk| disk.bus).chain(medium).any(|bus| bus == Bus::Scsi) {
        add(&["-device", "virtio-scsi-pci,id=scsi"]);
    }
    for (index, disk) in description.disks.iter().enumerate() {
        let name = format!("disk{index}");
        add(&["-blockdev", &image(&name, &disk.file, disk.format, false)]);
        add(&["-device", &device(index, &name, disk)]);
    }
    if let Some(drive) = &paths.config_drive {
        add(&["-blockdev", &image("config-drive", drive, "raw", true)]);
        add(&["-device", "virtio-blk-pci,drive=config-drive,serial=config-drive"]);
    }
    match boot {
        Boot::Ramdisk(boot) => {
            add(&["-kernel", &boot.kernel.to_string_lossy(), "-initrd", &boot.ramdisk.to_string_lossy()]);
            add(&["-append", &boot.parameters]);
        }
        Boot::Iso(iso) => {
            add(&["-blockdev", &image("iso", iso, "raw", true)]);
            let drive = if medium == Some(Bus::Scsi) { "scsi-cd,bus=scsi.0" } else { "ide-cd,bus=ide.5" };
            add(&["-device", &format!("{drive},drive=iso,bootindex=0")]);
        }
        Boot::Disk | Boot::Network => {}
    }
    vector.extend(description.extra_args.iter().cloned());
    vector
}

/// The console's log, and the socket for its users.
fn console(paths: &Paths) -> String {
    let log = escaped(&paths.console);
    match &paths.keyboard {
        Some(socket) => {
            format!("socket,id=console,server=on,wait=off,path={},logfile={log}", escaped(socket))
        }
        None => format!("file,id=console,path={log}"),
    }
}

/// JSON, because file names may hold commas and equal signs. An image is one file: what its header names is not opened.
fn image(name: &str, file: &Path, format: &str, read_only: bool) -> String {
    let mut image = json!({
        "driver": format,
        "node-name": name,
        "read-only": read_only,
        "discard": "unmap",
        "file": {"driver": "file", "filename": file, "discard": "unmap"},
    });
    if format != "raw" {
        image["backing"] = json!(null);
    }
    image.to_string()
}

fn escaped(file: &Path) -> String {
    file.to_string_lossy().replace(',', ",,")
}

fn netdev(description: &Description, agent_port: u16) -> String {
    match description.network {
        // The link of an unplugged card is taken down before the machine runs.
        Network::User | Network::Unplugged => {
            let file =
                description.boot_file.iter().map(|file| format!(",bootfile={}", file.replace(',', ",,")));
            let file = file.collect::<String>();
            let portal =
                description.portal_port.iter().map(|port| format!(",hostfwd=tcp:127.0.0.1:{port}-:{port}"));
            let portal = portal.collect::<String>();
            format!("user,id={NETWORK_ID},hostfwd=tcp:127.0.0.1:{agent_port}-:{AGENT_PORT}{portal}{file}")
        }
        Network::Isolated => format!("hubport,id={NETWORK_ID},hubid=0"),
    }
}

fn device(index: usize, name: &str, disk: &Disk) -> String {
    let serial = &disk.serial;
    match disk.bus {
        Bus::Virtio => format!("virtio-blk-pci,drive={name},serial={serial}"),
        Bus::Nvme => format!("nvme,drive={name},serial={serial}"),
        Bus::Sata => format!("ide-hd,drive={name},serial={serial},bus=ide.{index}"),
        Bus::Scsi => format!("scsi-hd,drive={name},serial={serial},bus=scsi.0"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::QemuSettings;
    use super::super::description::tests::{node, settings};
    use super::*;
    use serde_json::Value;

    fn vector_of(info: &Value, accelerator: Accelerator, boot: &Boot) -> (Node, Vec<String>) {
        vector_for("x86_64", info, accelerator, boot)
    }

    fn vector_for(
        architecture: &str,
        info: &Value,
        accelerator: Accelerator,
        boot: &Boot,
    ) -> (Node, Vec<String>) {
        let mut node = node(info);
        node.properties.insert("cpu_arch".into(), json!(architecture));
        let settings = QemuSettings { unsafe_driver_info: true, ..settings() };
        let description = Description::read(&node, &settings).unwrap();
        let paths = Paths {
            vars: (description.firmware != Firmware::Bios).then(|| "/s/n1/vars.fd".into()),
            console: "/s/a,b/console.log".into(),
            keyboard: Some("/s/console.sock".into()),
            pid: "/s/pid".into(),
            control: Some("/s/control.sock".into()),
            config_drive: matches!(boot, Boot::Iso(_)).then(|| "/s/config-drive".into()),
        };
        let vector = vector(&node, &description, accelerator, &paths, 40123, boot);
        (node, vector)
    }

    fn has(vector: &[String], words: [&str; 2]) -> bool {
        vector.windows(2).any(|pair| pair == words)
    }

    #[test]
    fn a_machine_that_boots_the_ramdisk() {
        let boot = Boot::Ramdisk(RamdiskBoot {
            kernel: "/k".into(),
            ramdisk: "/i".into(),
            parameters: "console=ttyS0 ipa-api-url=http://10.0.2.2:6385".into(),
        });
        let (node, vector) = vector_of(&json!({"qemu_memory_mib": 256}), Accelerator::Tcg, &boot);
        for words in [
            ["-uuid", &node.uuid.to_string()],
            ["-m", "256"],
            ["-smp", "1"],
            ["-accel", "tcg,thread=multi"],
            ["-cpu", "max"],
            ["-kernel", "/k"],
            ["-initrd", "/i"],
            ["-append", "console=ttyS0 ipa-api-url=http://10.0.2.2:6385"],
            ["-netdev", "user,id=net0,hostfwd=tcp:127.0.0.1:40123-:9999"],
            ["-device", "virtio-net-pci,netdev=net0,romfile=,mac=52:54:00:00:00:01"],
            ["-device", "virtio-rng-pci"],
            ["-sandbox", SANDBOX],
            [
                "-chardev",
                "socket,id=console,server=on,wait=off,path=/s/console.sock,logfile=/s/a,,b/console.log",
            ],
            ["-pidfile", "/s/pid"],
            ["-chardev", "socket,id=control,server=on,wait=off,path=/s/control.sock"],
        ] {
            assert!(has(&vector, words), "{words:?} in {vector:?}");
        }
        assert!(!vector.iter().any(|word| word == "-no-reboot" || word == "-no-shutdown"));
    }

    #[test]
    fn a_machine_with_a_bios_has_no_flash() {
        let (_, vector) = vector_of(&json!({"qemu_firmware": "bios"}), Accelerator::Tcg, &Boot::Disk);
        assert!(has(&vector, ["-machine", "q35"]), "{vector:?}");
        assert!(!vector.iter().any(|word| word.contains(".fd")), "{vector:?}");
    }

    #[test]
    fn a_machine_that_starts_from_the_network_has_an_option_rom() {
        let info = json!({"qemu_boot_file": "http://10.0.2.2:6385/boot.ipxe"});
        let (_, vector) = vector_of(&info, Accelerator::Tcg, &Boot::Network);
        let network =
            "user,id=net0,hostfwd=tcp:127.0.0.1:40123-:9999,bootfile=http://10.0.2.2:6385/boot.ipxe";
        assert!(has(&vector, ["-netdev", network]), "{vector:?}");
        let card = "virtio-net-pci,netdev=net0,bootindex=0,mac=52:54:00:00:00:01";
        assert!(has(&vector, ["-device", card]), "{vector:?}");
    }

    #[test]
    fn a_machine_that_boots_a_medium_has_its_config_drive() {
        let (_, vector) =
            vector_of(&json!({"qemu_disks": "/s/a"}), Accelerator::Tcg, &Boot::Iso("/live.iso".into()));
        for device in [
            "ide-cd,bus=ide.5,drive=iso,bootindex=0",
            "virtio-blk-pci,drive=config-drive,serial=config-drive",
            "virtio-blk-pci,drive=disk0,serial=farrier-0",
        ] {
            assert!(has(&vector, ["-device", device]), "{device} in {vector:?}");
        }
        let images: Vec<Value> = vector.iter().filter_map(|word| serde_json::from_str(word).ok()).collect();
        for (name, file) in [("iso", "/live.iso"), ("config-drive", "/s/config-drive")] {
            let image = images.iter().find(|image| image["node-name"] == name).unwrap();
            assert_eq!((&image["read-only"], &image["file"]["filename"]), (&json!(true), &json!(file)));
        }
    }

    #[test]
    fn a_machine_of_aarch64_is_a_virt_whose_firmware_drives_its_card_and_its_medium() {
        let of =
            |boot: &Boot| vector_for("aarch64", &json!({"qemu_disks": "/s/a"}), Accelerator::Tcg, boot).1;
        let vector = of(&Boot::Network);
        for words in [
            ["-machine", "virt,gic-version=max,pflash0=code,pflash1=vars"],
            ["-cpu", "cortex-a57"],
            ["-device", "virtio-net-pci,netdev=net0,bootindex=0,romfile=,mac=52:54:00:00:00:01"],
            ["-device", "virtio-blk-pci,drive=disk0,serial=farrier-0"],
        ] {
            assert!(has(&vector, words), "{words:?} in {vector:?}");
        }
        assert!(!vector.iter().any(|word| word.contains("ide") || word.contains("scsi")), "{vector:?}");
        let vector = of(&Boot::Iso("/live.iso".into()));
        for device in ["virtio-scsi-pci,id=scsi", "scsi-cd,bus=scsi.0,drive=iso,bootindex=0"] {
            assert!(has(&vector, ["-device", device]), "{device} in {vector:?}");
        }
    }

    #[test]
    fn a_machine_that_boots_its_disks() {
        let disks = "/s/a,".to_owned() + "/s/b;bus=nvme;serial=N1,/s/c;bus=sata,/s/d;bus=scsi;format=qcow2";
        let info =
            json!({"qemu_disks": disks, "qemu_network": "isolated", "qemu_extra_args": "-rtc base=utc"});
        let (_, vector) = vector_of(&info, Accelerator::Kvm, &Boot::Disk);
        for words in [
            ["-accel", "kvm"],
            ["-cpu", "host"],
            ["-netdev", "hubport,id=net0,hubid=0"],
            ["-device", "virtio-blk-pci,drive=disk0,serial=farrier-0"],
            ["-device", "nvme,drive=disk1,serial=N1"],
            ["-device", "ide-hd,drive=disk2,serial=farrier-2,bus=ide.2"],
            ["-device", "virtio-scsi-pci,id=scsi"],
            ["-device", "scsi-hd,drive=disk3,serial=farrier-3,bus=scsi.0"],
            ["-rtc", "base=utc"],
        ] {
            assert!(has(&vector, words), "{words:?} in {vector:?}");
        }
        assert!(!vector.iter().any(|word| word == "-kernel"));
        let images: Vec<Value> = vector.iter().filter_map(|word| serde_json::from_str(word).ok()).collect();
        let qcow2 = images.iter().find(|image| image["node-name"] == "disk3").unwrap();
        assert_eq!((&qcow2["driver"], &qcow2["file"]["filename"]), (&json!("qcow2"), &json!("/s/d")));
        assert_eq!(qcow2.get("backing"), Some(&Value::Null), "n03: what it is based on is not opened");
        let code = images.iter().find(|image| image["node-name"] == "code").unwrap();
        assert_eq!(code["read-only"], true);
    }
}
