//! What a node is enrolled with.

use serde_json::{Value, json};
use std::path::Path;

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
    /// A BMC that speaks Redfish.
    Redfish {
        /// URL of the BMC.
        address: &'a str,
        /// Path of the machine there.
        system: &'a str,
        /// Ironic's boot interface: `redfish-virtual-media` or `ipxe`.
        boot: &'static str,
    },
}

impl Enrolment<'_> {
    /// The record to create.
    pub(super) fn record(&self) -> Value {
        let file = |name| format!("file://{}", self.dist.join(name).display());
        let mut record = json!({
            "driver": "manual-management",
            "driver_info": {
                "deploy_kernel": file("vmlinuz"),
                "deploy_ramdisk": file("initramfs.img"),
                "rescue_kernel": file("vmlinuz"),
                "rescue_ramdisk": file("initramfs.img"),
                "kernel_append_params": self.parameters,
                "fast_track": self.fast_track,
            },
            "properties": {
                "capabilities": "boot_mode:uefi",
                "cpu_arch": "x86_64",
                "root_device": {"serial": "ROOT"},
            },
        });
        if let Control::Redfish { address, system, boot } = self.control {
            record["driver"] = json!("redfish");
            record["boot_interface"] = json!(boot);
            record["driver_info"]["redfish_address"] = json!(address);
            record["driver_info"]["redfish_system_id"] = json!(system);
        }
        record
    }
}
