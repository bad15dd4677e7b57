//! A machine as its `driver_info` describes it.

use super::QemuSettings;
use super::accelerator::Accelerator;
use super::architecture::Architecture;
use super::disks::{Bus, Disk};
use super::files;
use super::firmware::Firmware;
use farrier_conductor::interfaces::{InterfaceError, Properties};
use farrier_conductor::model::{Family, Node};
use farrier_media::{KernelParameterError, KernelParameters};
use serde_json::Value;
use std::path::PathBuf;
use std::str::FromStr;

/// The keys of the machine itself.
pub(super) const MACHINE: Properties = &[
    (
        "qemu_binary",
        "the program; that of the property cpu_arch, such as qemu-system-x86_64, unless it is given; \
         taken with --qemu-unsafe-driver-info",
    ),
    ("qemu_memory_mib", "memory in MiB; 512 unless it is given"),
    ("qemu_cpus", "number of processors; 1 unless it is given"),
    (
        "qemu_disks",
        "disks, comma separated: FILE;bus=virtio|nvme|sata|scsi;serial=TEXT;format=raw|qcow2; sata with x86_64 only",
    ),
    ("qemu_firmware", "uefi, or bios with x86_64 only; uefi unless it is given"),
    ("qemu_firmware_code", "file with the code of UEFI firmware; looked for unless it is given"),
    (
        "qemu_firmware_vars_template",
        "file with the first variables of UEFI firmware; looked for unless it is given",
    ),
    ("qemu_accelerator", "auto, tcg, or kvm with the architecture of the host only; auto unless it is given"),
    ("qemu_network", "user, unplugged or isolated; user unless it is given"),
    (
        "qemu_boot_file",
        "boot file in DHCP replies of the user network, such as http://10.0.2.2:6385/boot.ipxe; nothing unless it is \
         given",
    ),
    ("qemu_agent_port", "port on 127.0.0.1 that leads to the agent; any free one unless it is given"),
    (
        "qemu_extra_args",
        "further arguments of QEMU, separated by spaces; taken with --qemu-unsafe-driver-info",
    ),
];

/// The keys of its console.
pub(super) const CONSOLE: Properties = &[(
    "qemu_console_log",
    "file for the serial console, with a name that ends in .log; console.log in the machine's folder unless it is given",
)];

/// The keys of what it boots.
pub(super) const BOOT: Properties = &[
    ("deploy_kernel", "file with the kernel of the ramdisk; required"),
    ("deploy_ramdisk", "file with the ramdisk; required"),
    ("rescue_kernel", "file with the kernel of the ramdisk for rescues; deploy_kernel unless it is given"),
    ("rescue_ramdisk", "file with the ramdisk for rescues; deploy_ramdisk unless it is given"),
    ("kernel_append_params", "kernel parameters of the ramdisk, besides those that it needs"),
];

/// How the machine's network card is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    /// User networking with DHCP.
    User,
    /// The link is down.
    Unplugged,
    /// The link is up without an answer.
    Isolated,
}

/// How the accelerator is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcceleratorChoice {
    /// By trying.
    Auto,
    /// By the operator.
    Use(Accelerator),
}

/// A machine as its `driver_info` describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Description {
    pub(super) architecture: Architecture,
    pub(super) binary: String,
    pub(super) memory_mib: u32,
    pub(super) cpus: u32,
    pub(super) disks: Vec<Disk>,
    pub(super) firmware: Firmware,
    pub(super) accelerator: AcceleratorChoice,
    pub(super) console_log: Option<PathBuf>,
    pub(super) network: Network,
    pub(super) extra_args: Vec<String>,
    /// The boot file in the DHCP reply.
    pub(super) boot_file: Option<String>,
    /// The port of the host that leads to the agent, if not any.
    pub(super) agent_port: Option<u16>,
    /// The port of the host, and of the machine, by which its exported disk is reached.
    pub(super) portal_port: Option<u16>,
    pub(super) kernel_append_params: KernelParameters,
    /// Those of rescues, while there is one.
    pub(super) kernel: Option<PathBuf>,
    pub(super) ramdisk: Option<PathBuf>,
}

impl Description {
    /// Reads and checks everything that can be checked without looking at files.
    pub(super) fn read(node: &Node, settings: &QemuSettings) -> Result<Self, InterfaceError> {
        refuse_unknown_keys(node)?;
        files::refuse_unsafe_keys(node, settings)?;
        let architecture = Architecture::of(node)?;
        let disks = text(node, "qemu_disks")?.unwrap_or_default();
        let extra_args = text(node, "qemu_extra_args")?.unwrap_or_default();
        let append = text(node, "kernel_append_params")?.unwrap_or_default();
        let description = Self {
            architecture,
            binary: text(node, "qemu_binary")?.unwrap_or_else(|| architecture.binary().to_owned()),
            memory_mib: number(node, "qemu_memory_mib", 512)?,
            cpus: number(node, "qemu_cpus", 1)?,
            disks: disks_of(architecture, &disks)?,
            firmware: Firmware::read(
                architecture,
                text(node, "qemu_firmware")?.as_deref(),
                path(node, "qemu_firmware_code")?,
                path(node, "qemu_firmware_vars_template")?,
            )?,
            accelerator: accelerator(architecture, text(node, "qemu_accelerator")?.as_deref())?,
            console_log: path(node, "qemu_console_log")?,
            network: network(text(node, "qemu_network")?.as_deref())?,
            extra_args: extra_args.split_whitespace().map(str::to_owned).collect(),
            kernel_append_params: append.parse().map_err(|error: KernelParameterError| {
                InterfaceError::driver_info("kernel_append_params", error.to_string())
            })?,
            kernel: path_of_rescue(node, "rescue_kernel")?.or(path_of_image(node, "deploy_kernel")?),
            ramdisk: path_of_rescue(node, "rescue_ramdisk")?.or(path_of_image(node, "deploy_ramdisk")?),
            boot_file: text(node, "qemu_boot_file")?,
            agent_port: text(node, "qemu_agent_port")?.map(|text| port(&text)).transpose()?,
            portal_port: text(node, "iscsi_portal_port")?.map(|text| port(&text)).transpose()?,
        };
        files::check_names(&description, &settings.allowed)?;
        Ok(description)
    }
}

fn refuse_unknown_keys(node: &Node) -> Result<(), InterfaceError> {
    let keys: Vec<_> = MACHINE.iter().chain(CONSOLE).map(|(key, _)| *key).collect();
    let unknown =
        node.driver_info.keys().find(|key| key.starts_with("qemu_") && !keys.contains(&key.as_str()));
    unknown.map_or(Ok(()), |key| {
        Err(InterfaceError::driver_info(key, format!("is not known; the keys are {}", keys.join(", "))))
    })
}

fn text(node: &Node, key: &str) -> Result<Option<String>, InterfaceError> {
    match node.driver_info.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err(InterfaceError::driver_info(key, "must be a text or a number")),
    }
}

fn number(node: &Node, key: &str, default: u32) -> Result<u32, InterfaceError> {
    match text(node, key)?.map(|text| text.parse()) {
        None => Ok(default),
        Some(Ok(number)) if number > 0 => Ok(number),
        Some(_) => Err(InterfaceError::driver_info(key, "must be a whole number above 0")),
    }
}

fn path(node: &Node, key: &str) -> Result<Option<PathBuf>, InterfaceError> {
    let path = text(node, key)?.map(PathBuf::from);
    if path.as_ref().is_some_and(|path| !path.is_absolute()) {
        return Err(InterfaceError::driver_info(
            key,
            "must be an absolute path, since the conductor runs elsewhere",
        ));
    }
    Ok(path)
}

fn port(text: &str) -> Result<u16, InterfaceError> {
    let number = text.parse().ok().filter(|port| *port > 0);
    number.ok_or_else(|| InterfaceError::driver_info("qemu_agent_port", "must be a port from 1 to 65535"))
}

/// A file that QEMU loads; nothing where the machine's own firmware loads it, from a URL.
fn path_of_image(node: &Node, key: &str) -> Result<Option<PathBuf>, InterfaceError> {
    match text(node, key)?.is_some_and(|text| text.contains("://")) {
        true => Ok(None),
        false => path(node, key),
    }
}

/// The same, of a file that only rescues boot.
fn path_of_rescue(node: &Node, key: &str) -> Result<Option<PathBuf>, InterfaceError> {
    let path = path_of_image(node, key)?;
    Ok(path.filter(|_| node.provision_state.family() == Some(Family::Rescue)))
}

fn disks_of(architecture: Architecture, text: &str) -> Result<Vec<Disk>, InterfaceError> {
    let disks = Disk::parse_list(text)?;
    match architecture {
        Architecture::Aarch64 if disks.iter().any(|disk| disk.bus == Bus::Sata) => {
            Err(InterfaceError::driver_info(
                "qemu_disks",
                "bus=sata is of x86_64; aarch64 has virtio, nvme and scsi",
            ))
        }
        _ => Ok(disks),
    }
}

fn accelerator(architecture: Architecture, text: Option<&str>) -> Result<AcceleratorChoice, InterfaceError> {
    match text.unwrap_or("auto") {
        "auto" => Ok(AcceleratorChoice::Auto),
        "kvm" if !architecture.is_of_host() => {
            let reason = format!("kvm has no machines of {} here; choose tcg or auto", architecture.as_str());
            Err(InterfaceError::driver_info("qemu_accelerator", reason))
        }
        named => Accelerator::from_str(named)
            .map(AcceleratorChoice::Use)
            .map_err(|()| InterfaceError::driver_info("qemu_accelerator", "must be auto, kvm or tcg")),
    }
}

fn network(text: Option<&str>) -> Result<Network, InterfaceError> {
    match text.unwrap_or("user") {
        "user" => Ok(Network::User),
        "unplugged" => Ok(Network::Unplugged),
        "isolated" => Ok(Network::Isolated),
        _ => Err(InterfaceError::driver_info("qemu_network", "must be user, unplugged or isolated")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::netboot::images::AllowedFolders;
    use farrier_conductor::model::NewNode;
    use farrier_conductor::model::clock::{Clock, SystemClock};
    use serde_json::json;

    /// A node whose firmware need not be installed.
    pub(in super::super) fn node(info: &Value) -> Node {
        let mut driver_info = json!({
            "qemu_firmware_code": "/firmware/code.fd",
            "qemu_firmware_vars_template": "/firmware/vars.fd",
        });
        let driver_info = driver_info.as_object_mut().unwrap();
        driver_info.extend(info.as_object().unwrap().clone());
        let new = NewNode {
            name: Some("n1".into()),
            driver: "qemu".into(),
            driver_info: driver_info.clone().into(),
            ports: vec!["52:54:00:00:00:01".parse().unwrap()],
            ..NewNode::default()
        };
        Node::enrol(new, SystemClock.now())
    }

    /// Records may name files below `/s`, and the firmware of [`node`].
    pub(in super::super) fn settings() -> QemuSettings {
        let allowed = AllowedFolders::new(vec!["/s".into(), "/firmware".into()]).unwrap();
        QemuSettings { allowed, unsafe_driver_info: false }
    }

    fn unsafe_settings() -> QemuSettings {
        QemuSettings { unsafe_driver_info: true, ..settings() }
    }

    #[test]
    fn defaults() {
        let description = Description::read(&node(&json!({})), &settings()).unwrap();
        assert_eq!(description.binary, "qemu-system-x86_64");
        assert_eq!((description.memory_mib, description.cpus), (512, 1));
        assert_eq!(description.accelerator, AcceleratorChoice::Auto);
        assert_eq!(description.network, Network::User);
        assert!(description.disks.is_empty() && description.extra_args.is_empty());
    }

    #[test]
    fn bad_values_are_named() {
        for (info, key) in [
            (json!({"qemu_memory_mib": "much"}), "qemu_memory_mib"),
            (json!({"qemu_memory_mib": 0}), "qemu_memory_mib"),
            (json!({"qemu_cpus": true}), "qemu_cpus"),
            (json!({"qemu_disks": "relative.img"}), "qemu_disks"),
            (json!({"qemu_firmware": "coreboot"}), "qemu_firmware"),
            (json!({"qemu_accelerator": "hvf"}), "qemu_accelerator"),
            (json!({"qemu_network": "bridge"}), "qemu_network"),
            (json!({"qemu_console_log": "console.log"}), "qemu_console_log"),
            (json!({"qemu_disk": "/d.img"}), "qemu_disk"),
            (json!({"deploy_kernel": "vmlinuz"}), "deploy_kernel"),
            (json!({"qemu_agent_port": 0}), "qemu_agent_port"),
            (json!({"qemu_agent_port": "ssh"}), "qemu_agent_port"),
            (json!({"kernel_append_params": "a\nb"}), "kernel_append_params"),
        ] {
            match Description::read(&node(&info), &unsafe_settings()) {
                Err(InterfaceError::DriverInfo { key: named, .. }) => assert_eq!(named, key),
                other => panic!("{info}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_an_architecture_has_not_is_refused() {
        let foreign = if cfg!(target_arch = "aarch64") { "x86_64" } else { "aarch64" };
        for (architecture, info, expected) in [
            ("x86_64", json!({}), Ok("qemu-system-x86_64")),
            ("aarch64", json!({}), Ok("qemu-system-aarch64")),
            ("aarch64", json!({"qemu_binary": "/q", "qemu_disks": "/s/a;bus=nvme,/s/b;bus=scsi"}), Ok("/q")),
            ("aarch64", json!({"qemu_firmware": "bios"}), Err("qemu_firmware")),
            ("aarch64", json!({"qemu_disks": "/s/a,/s/b;bus=sata"}), Err("qemu_disks")),
            (foreign, json!({"qemu_accelerator": "kvm"}), Err("qemu_accelerator")),
            (std::env::consts::ARCH, json!({"qemu_accelerator": "kvm", "qemu_binary": "/q"}), Ok("/q")),
            ("ppc64le", json!({}), Err("cpu_arch")),
        ] {
            let mut node = node(&info);
            node.properties.insert("cpu_arch".into(), json!(architecture));
            match (expected, Description::read(&node, &unsafe_settings()).map_err(|error| error.to_string()))
            {
                (Ok(binary), Ok(description)) => assert_eq!(description.binary, binary),
                (Err(part), Err(error)) => assert!(error.contains(part), "{error}"),
                (_, read) => panic!("{architecture} {info}: {read:?}"),
            }
        }
    }
}
