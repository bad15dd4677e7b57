//! What a node is enrolled with: all that its conductor has to know of the machine.

use crate::bmc::ipmi;
use crate::machine::Hardware;
use serde_json::{Value, json};
use std::path::Path;

/// Memory of a machine that `farrier` runs, for the ramdisk and for what is installed alike. Under UEFI, GRUB finds no
/// room in less for Debian's common kernel.
const MEMORY_MIB: u32 = 512;

/// A node to be enrolled.
#[derive(Debug)]
pub struct Enrolment<'a> {
    /// Hardware address of its network card.
    pub mac: &'a str,
    /// Folder with `vmlinuz` and `initramfs.img`.
    pub dist: &'a Path,
    /// Further kernel parameters of the ramdisk.
    pub parameters: &'a str,
    /// The node keeps its ramdisk between operations.
    pub fast_track: bool,
    /// Who switches the machine on and chooses from what it boots.
    pub control: Control<'a>,
}

/// Who switches a machine on and off.
#[derive(Debug, Clone, Copy)]
pub enum Control<'a> {
    /// An operator by hand; Ironic believes what it is told.
    Hand,
    /// An operator by hand, too, who has it boot from the network.
    Network {
        /// The boot interface.
        boot: &'a str,
        /// How its firmware boots: `bios` or `uefi`.
        mode: &'a str,
    },
    /// A BMC that speaks Redfish.
    Redfish {
        /// URL of the BMC.
        address: &'a str,
        /// Path of the machine there.
        system: &'a str,
        /// Ironic's boot interface: `redfish-virtual-media` or `ipxe`.
        boot: &'static str,
        /// URL of the ramdisk's ISO; without it the conductor makes one of kernel and ramdisk.
        iso: Option<&'a str>,
    },
    /// A BMC that speaks IPMI, at this port of the loopback address; the machine boots by iPXE.
    Ipmi(u16),
    /// `farrier` itself, by its driver `qemu`.
    Qemu {
        /// What the machine is made of.
        hardware: &'a Hardware,
        /// Further arguments of QEMU.
        arguments: &'a [String],
        /// Where the serial console of its last power-on is written.
        console: &'a Path,
    },
}

impl Enrolment<'_> {
    /// The record to create.
    pub(super) fn record(&self) -> Value {
        let mut record = json!({
            "driver_info": {"kernel_append_params": self.parameters, "fast_track": self.fast_track},
            "properties": {
                "capabilities": "boot_mode:uefi",
                "cpu_arch": "x86_64",
                "root_device": {"serial": "ROOT"},
            },
        });
        for (role, name) in [("kernel", "vmlinuz"), ("ramdisk", "initramfs.img")] {
            for operation in ["deploy", "rescue"] {
                let file = self.control.file(&self.dist.join(name));
                record["driver_info"][format!("{operation}_{role}")] = json!(file);
            }
        }
        self.control.describe(&mut record);
        record
    }
}

impl Control<'_> {
    /// How a conductor is told of a file.
    fn file(self, path: &Path) -> String {
        match self {
            Self::Hand | Self::Network { .. } | Self::Redfish { .. } | Self::Ipmi(_) => {
                format!("file://{}", path.display())
            }
            Self::Qemu { .. } => path.display().to_string(),
        }
    }

    /// Adds the driver to a record, and what it needs.
    fn describe(self, record: &mut Value) {
        match self {
            Self::Hand => record["driver"] = json!("manual-management"),
            Self::Network { boot, mode } => {
                record["driver"] = json!("manual-management");
                record["boot_interface"] = json!(boot);
                record["properties"]["capabilities"] = json!(format!("boot_mode:{mode}"));
            }
            Self::Redfish { address, system, boot, iso } => {
                record["driver"] = json!("redfish");
                record["boot_interface"] = json!(boot);
                record["driver_info"]["redfish_address"] = json!(address);
                record["driver_info"]["redfish_system_id"] = json!(system);
                if let Some(iso) = iso {
                    record["driver_info"]["deploy_iso"] = json!(iso);
                }
            }
            Self::Ipmi(port) => {
                record["driver"] = json!("ipmi");
                record["boot_interface"] = json!("ipxe");
                record["driver_info"]["ipmi_address"] = json!("127.0.0.1");
                record["driver_info"]["ipmi_port"] = json!(port);
                record["driver_info"]["ipmi_username"] = json!(ipmi::USER);
                record["driver_info"]["ipmi_password"] = json!(ipmi::PASSWORD);
            }
            Self::Qemu { hardware, arguments, console } => {
                let disks = hardware.disks.iter();
                let disks: Vec<_> =
                    disks.map(|(file, serial)| format!("{};serial={serial}", file.display())).collect();
                record["driver"] = json!("qemu");
                record["driver_info"]["qemu_memory_mib"] = json!(MEMORY_MIB);
                record["driver_info"]["qemu_disks"] = json!(disks.join(","));
                record["driver_info"]["qemu_console_log"] = json!(console);
                record["driver_info"]["qemu_extra_args"] = json!(arguments.join(" "));
            }
        }
    }
}
