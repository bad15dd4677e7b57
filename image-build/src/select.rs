//! Which kernel modules a ramdisk carries: all that may stand between a server and its disks and links.
//!
//! A class takes whole folders of the kernel's tree, so that a driver that a newer kernel adds comes by
//! itself, and single modules where a folder holds much else.

use crate::module_tree::ModuleTree;

/// Modules of one purpose.
#[derive(Debug)]
pub struct ModuleClass {
    /// Purpose, as the manifest shows it.
    pub name: &'static str,
    /// Without one of these, as a module or built in, no ramdisk is built.
    pub required: &'static [&'static str],
    /// Folders below the tree's `kernel/`, packed whole.
    pub folders: &'static [&'static str],
    /// Packed where the kernel has them.
    pub wanted: &'static [&'static str],
    /// Loaded at every start, since no device asks for them by its modalias.
    pub always_loaded: &'static [&'static str],
}

/// A class of nothing, to be filled in part.
const EMPTY: ModuleClass =
    ModuleClass { name: "", required: &[], folders: &[], wanted: &[], always_loaded: &[] };

/// Folders inside those of the classes that no server needs.
const LEFT_OUT: &[&str] = &[
    "drivers/ata/pata_pcmcia",
    "drivers/net/ethernet/8390",
    "drivers/scsi/pcmcia",
    "drivers/scsi/scsi_debug",
    "drivers/usb/host/sl811_cs",
];

/// Every module that is chosen. What these depend on comes by itself.
pub const CLASSES: &[ModuleClass] = &[
    ModuleClass {
        name: "virtual machine",
        required: &["virtio_pci", "virtio_blk", "virtio_net"],
        folders: &["drivers/hv", "drivers/net/hyperv", "drivers/virtio"],
        wanted: &["virtio_console", "virtio_rng", "vmxnet3", "xen_blkfront", "xen_netfront"],
        ..EMPTY
    },
    ModuleClass {
        name: "disk",
        required: &["nvme", "ahci", "sd_mod"],
        folders: &["drivers/ata", "drivers/nvme/host", "drivers/nvdimm"],
        wanted: &["loop", "mmc_block", "mtip32xx", "nfit", "sdhci_acpi", "sdhci_pci"],
        ..EMPTY
    },
    ModuleClass {
        name: "storage controller",
        // Also host bus adapters, iSCSI initiators, path handlers.
        folders: &["drivers/message", "drivers/scsi"],
        wanted: &["vmd"],
        ..EMPTY
    },
    ModuleClass {
        name: "network",
        required: &["e1000e"],
        folders: &["drivers/net/ethernet", "drivers/net/mdio", "drivers/net/pcs", "drivers/net/phy"],
        wanted: &[
            "8021q",
            "bonding",
            "bridge",
            // The BMC's own link to the host, and adapters of small servers.
            "asix",
            "ax88179_178a",
            "cdc_eem",
            "cdc_ether",
            "cdc_ncm",
            "lan78xx",
            "r8152",
            "rndis_host",
        ],
        ..EMPTY
    },
    ModuleClass { name: "InfiniBand", folders: &["drivers/infiniband"], ..EMPTY },
    ModuleClass {
        name: "usb",
        folders: &["drivers/usb/host", "drivers/usb/storage"],
        wanted: &["hid_generic", "usbhid"],
        ..EMPTY
    },
    ModuleClass { name: "arrays and mapped devices", folders: &["drivers/md"], ..EMPTY },
    ModuleClass {
        name: "iSCSI boot",
        wanted: &["iscsi_ibft"],
        // The table in which firmware says that it booted from an iSCSI disk belongs to no device.
        always_loaded: &["iscsi_ibft"],
        ..EMPTY
    },
    ModuleClass { name: "iSCSI target", folders: &["drivers/target"], ..EMPTY },
    ModuleClass {
        name: "file system",
        folders: &["fs/btrfs", "fs/ext4", "fs/fat", "fs/isofs", "fs/squashfs", "fs/udf", "fs/xfs"],
        // FAT asks for the character sets of its names when it is mounted.
        wanted: &["nls_ascii", "nls_cp437", "nls_iso8859_1", "nls_utf8"],
        ..EMPTY
    },
    ModuleClass {
        name: "BMC and TPM",
        folders: &["drivers/char/ipmi", "drivers/char/tpm"],
        // The device file by which the agent asks for the BMC's addresses belongs to no device.
        always_loaded: &["ipmi_devintf"],
        ..EMPTY
    },
    ModuleClass {
        name: "system on a chip",
        folders: &["drivers/bus/fsl-mc", "drivers/phy", "drivers/soc/fsl"],
        wanted: &["gpio_keys", "i2c_designware_platform", "i2c_imx", "i2c_xgene_slimpro"],
        ..EMPTY
    },
    ModuleClass {
        name: "kernel interface",
        required: &["af_packet", "efivarfs"],
        wanted: &["efi_pstore"],
        // DHCP needs packet sockets before any address exists, boot entries need EFI variables.
        always_loaded: &["af_packet", "efivarfs"],
        ..EMPTY
    },
];

impl ModuleClass {
    /// Names of the modules in the class's folders.
    pub fn in_folders<'tree>(&self, tree: &'tree ModuleTree) -> impl Iterator<Item = &'tree str> {
        let is_below = |path: &str, folder: &str| {
            let rest = path.strip_prefix("kernel/").and_then(|path| path.strip_prefix(folder));
            rest.is_some_and(|rest| rest.starts_with(['/', '.']))
        };
        let folders = self.folders;
        tree.modules
            .iter()
            .filter(move |(_, module)| {
                folders.iter().any(|folder| is_below(&module.path, folder))
                    && !LEFT_OUT.iter().any(|folder| is_below(&module.path, folder))
            })
            .map(|(name, _)| &**name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::module_tree::tests::tree;

    #[test]
    fn names_are_spelt_as_the_kernel_does_and_once() {
        let mut seen = BTreeSet::new();
        for class in CLASSES {
            for name in class.required.iter().chain(class.wanted) {
                assert!(!name.contains('-'), "{name}");
                assert!(seen.insert(name), "{name} stands twice");
            }
            for folder in class.folders {
                assert!(!folder.ends_with('/') && seen.insert(folder), "{folder}");
            }
        }
    }

    #[test]
    fn folders_are_taken_whole_but_for_what_is_left_out() {
        let tree = tree(&[
            ("kernel/drivers/ata/ahci.ko", &[]),
            ("kernel/drivers/ata/pata_pcmcia.ko", &[]),
            ("kernel/drivers/ata/deeper/sata_x.ko", &[]),
            ("kernel/drivers/ata2/other.ko", &[]),
            ("updates/drivers/ata/extra.ko", &[]),
        ]);
        let class = ModuleClass { folders: &["drivers/ata"], ..EMPTY };
        assert_eq!(class.in_folders(&tree).collect::<Vec<_>>(), ["ahci", "sata_x"]);
    }
}
