//! Which kernel modules a ramdisk carries: the drivers between a common server and its disks and links.

/// Modules of one purpose.
#[derive(Debug)]
pub struct ModuleClass {
    /// Purpose, as the manifest shows it.
    pub name: &'static str,
    /// Without one of these, as a module or built in, no ramdisk is built.
    pub required: &'static [&'static str],
    /// Packed where the kernel has them.
    pub wanted: &'static [&'static str],
    /// Loaded at every start, since no device asks for them by its modalias.
    pub always_loaded: &'static [&'static str],
}

/// Every module that is chosen by name. What these depend on comes by itself.
pub const CLASSES: &[ModuleClass] = &[
    ModuleClass {
        name: "virtual machine",
        required: &["virtio_pci", "virtio_blk", "virtio_net"],
        wanted: &[
            "virtio_scsi",
            "virtio_console",
            "virtio_rng",
            "virtio_mmio",
            "vmw_pvscsi",
            "hv_storvsc",
            "hv_netvsc",
        ],
        always_loaded: &[],
    },
    ModuleClass {
        name: "disk",
        required: &["nvme", "ahci", "sd_mod"],
        wanted: &["ata_generic", "ata_piix", "sr_mod", "ses", "isci"],
        always_loaded: &[],
    },
    ModuleClass {
        name: "storage controller",
        required: &[],
        wanted: &[
            "aacraid",
            "hpsa",
            "megaraid_sas",
            "mpi3mr",
            "mpt3sas",
            "mptsas",
            "mptspi",
            "smartpqi",
            "vmd",
        ],
        always_loaded: &[],
    },
    ModuleClass {
        name: "network",
        required: &["e1000e"],
        wanted: &[
            "atlantic",
            "be2net",
            "bnx2x",
            "bnxt_en",
            "cxgb4",
            "e1000",
            "ena",
            "enic",
            "gve",
            "i40e",
            "iavf",
            "ice",
            "igb",
            "igc",
            "ionic",
            "ixgbe",
            "ixgbevf",
            "mlx4_en",
            "mlx5_core",
            "qede",
            "r8169",
            "sfc",
            "tg3",
            "vmxnet3",
        ],
        always_loaded: &[],
    },
    ModuleClass {
        name: "usb",
        required: &[],
        wanted: &["ehci_pci", "uas", "uhci_hcd", "usb_storage", "usbhid", "xhci_pci"],
        always_loaded: &[],
    },
    ModuleClass {
        // Loaded when the agent mounts virtual media; the tables are what Debian's FAT defaults to.
        name: "virtual media",
        required: &[],
        wanted: &["isofs", "nls_ascii", "nls_cp437", "nls_iso8859_1", "nls_utf8", "vfat"],
        always_loaded: &[],
    },
    ModuleClass {
        name: "BMC",
        required: &[],
        wanted: &["ipmi_devintf", "ipmi_si", "ipmi_ssif"],
        // The device file by which the agent asks for the BMC's addresses belongs to no device.
        always_loaded: &["ipmi_devintf"],
    },
    ModuleClass {
        name: "kernel interface",
        required: &["af_packet", "efivarfs"],
        wanted: &[],
        // DHCP needs packet sockets before any address exists, boot entries need EFI variables.
        always_loaded: &["af_packet", "efivarfs"],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_spelt_as_the_kernel_does_and_once() {
        let mut seen = BTreeSet::new();
        for class in CLASSES {
            for name in class.required.iter().chain(class.wanted) {
                assert!(!name.contains('-'), "{name}");
                assert!(seen.insert(name), "{name} stands twice");
            }
            for name in class.always_loaded {
                assert!(class.required.contains(name) || class.wanted.contains(name), "{name} is not packed");
            }
        }
    }
}
