//! The block devices of this machine, as `lsblk` lists them (section 8.3).

pub mod multipath;

use crate::device::{BlockDevice, hardware_partition, stack};
use crate::error::Error;
use farrier_linux::sysfs;
use std::path::Path;

/// Kernel names that are never disks of a machine, each with what it is instead (D31). Every other block device is
/// one, also of a kind that nobody has heard of: what is left out is not erased. Persistent memory (`pmem0`) and disks
/// with zones are disks; those of a network (`nbd0`, `rbd0`) are there when something in the ramdisk attaches them.
const NO_DISKS: &[(&str, &str)] = &[
    ("fd", "floppy"),
    ("sr", "optical drive"),
    ("ram", "memory of the kernel"),
    ("zram", "compressed memory of the kernel"),
    ("loop", "file"),
    ("nullb", "nothing at all, for tests"),
    // Firmware lies there. Whoever erases it has a machine that never starts again.
    ("mtdblock", "flash chip of the mainboard"),
    ("ubiblock", "volume on such a flash chip"),
    // What lies on disks goes with the disks.
    ("bcache", "cache over disks"),
    ("drbd", "copy of a disk on another machine"),
    ("zd", "volume of a ZFS pool"),
];

/// Kernel names of device mapper, which are disks where they are multipath devices.
const DEVICE_MAPPER_PREFIX: &str = "dm-";

/// SCSI peripheral type of optical drives.
const SCSI_TYPE_ROM: u8 = 5;

/// Lists the disks in the sysfs mounted at `sysfs`, in order of their names, each once (D23).
///
/// # Errors
///
/// [`Error::Device`] when the listing itself cannot be read. A disk that goes away meanwhile is left out.
pub fn list(sysfs: &Path) -> Result<Vec<BlockDevice>, Error> {
    every_path(sysfs).map(multipath::one_for_each)
}

/// The disks that report no size: they failed, are locked, or were being formatted. Drives without a medium are
/// none of them.
///
/// # Errors
///
/// As [`list`].
pub fn without_size(sysfs: &Path) -> Result<Vec<BlockDevice>, Error> {
    let is_real = |device: &BlockDevice| {
        let directory = device.directory();
        directory.join("device").exists() && sysfs::number::<u8>(directory, "removable") != Some(1)
    };
    let mut devices = every_device(sysfs)?;
    devices.retain(|device| device.disk.size == 0 && is_real(device));
    Ok(devices)
}

/// As [`list`], but disks with several paths that are not joined stand there once for each.
pub(crate) fn every_path(sysfs: &Path) -> Result<Vec<BlockDevice>, Error> {
    let mut devices = every_device(sysfs)?;
    devices.retain(|device| device.disk.size > 0);
    Ok(devices)
}

fn every_device(sysfs: &Path) -> Result<Vec<BlockDevice>, Error> {
    let block = sysfs.join("block");
    block.read_dir().map_err(|source| Error::Device {
        device: block.clone(),
        action: "listing block devices".to_owned(),
        source,
    })?;
    Ok(sysfs::entries(&block)
        .into_iter()
        .filter(|name| is_disk(&block.join(name), name))
        .filter_map(|name| BlockDevice::describe(sysfs, &name).ok())
        .collect())
}

fn is_disk(directory: &Path, name: &str) -> bool {
    let ignored = NO_DISKS.iter().any(|(prefix, _)| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    let protected = hardware_partition::is_replay_protected(name);
    // Paths of a multipath NVMe namespace carry this mark and cannot be opened.
    let hidden = sysfs::number::<u8>(directory, "hidden") == Some(1);
    let optical = sysfs::number::<u8>(&directory.join("device"), "type") == Some(SCSI_TYPE_ROM);
    let mapped = name.starts_with(DEVICE_MAPPER_PREFIX) && !stack::is_multipath(directory);
    !ignored
        && !protected
        && !hidden
        && !optical
        && !mapped
        && !is_path(directory)
        && is_raid_if_array(directory)
}

/// Paths of a multipath device are left to that device (D23).
fn is_path(directory: &Path) -> bool {
    stack::above(directory).iter().any(|device| stack::is_multipath(device))
}

/// Arrays count as disks, but not the containers and linear joins that md also shows.
fn is_raid_if_array(directory: &Path) -> bool {
    let array = directory.join("md");
    !array.exists() || sysfs::attribute(&array, "level").is_some_and(|level| level.starts_with("raid"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_sysfs::FakeSysfs;
    use crate::hints::Hints;

    fn machine() -> FakeSysfs {
        let sysfs = FakeSysfs::new();
        sysfs.disk("devices/pci0/virtio1/block/vda", 20 << 30, &[("serial", "virtio-serial\n")]);
        sysfs.disk(
            "devices/pci0/ata1/host0/target0:0:0/0:0:0:0/block/sda",
            40 << 30,
            &[
                ("queue/rotational", "1\n"),
                ("queue/physical_block_size", "4096\n"),
                ("device/model", "QEMU HARDDISK   \n"),
                ("device/vendor", "ATA     \n"),
                ("device/vpd_pg80", "\0\u{80}\0\u{14}   QM00001"),
                ("device/wwid", "naa.5000c500a1b2c3d4\n"),
                ("device/scsi_device/0:0:0:0/uevent", ""),
                ("../../../../scsi_host/host0/proc_name", "ahci\n"),
            ],
        );
        sysfs.disk(
            "devices/pci0/nvme/nvme0/nvme0n1",
            10 << 30,
            &[
                ("device/model", "QEMU NVMe Ctrl\n"),
                ("device/serial", "nv-1\n"),
                ("wwid", "eui.0025388b710116a1\n"),
                ("queue/logical_block_size", "4096\n"),
            ],
        );
        sysfs.disk("devices/pci0/usb1/1-1/host9/block/sdb", 8 << 30, &[("device/wwid", "t10.USB stick\n")]);
        sysfs.disk(
            "devices/pci0/host3/port-3:0/end_device-3:0/block/sdc",
            1 << 40,
            &[
                ("device/wwid", "naa.600508b1001c0123456789abcdef0123\n"),
                ("../../../../sas_host/host3/uevent", ""),
            ],
        );
        sysfs
    }

    #[test]
    fn attributes_come_from_sysfs() {
        let sysfs = machine();
        let disks = list(sysfs.path()).unwrap();
        let names: Vec<_> = disks.iter().map(|device| device.disk.name.as_str()).collect();
        assert_eq!(names, ["/dev/nvme0n1", "/dev/sda", "/dev/sdb", "/dev/sdc", "/dev/vda"]);
        let transports: Vec<_> = disks.iter().map(|device| device.disk.tran.as_deref().unwrap()).collect();
        assert_eq!(transports, ["nvme", "sata", "usb", "sas", "virtio"]);

        let sda = &disks[1].disk;
        assert_eq!(sda.size, 40 << 30);
        assert!(sda.rotational);
        assert_eq!((sda.logical_sectors, sda.physical_sectors), (512, 4096));
        assert_eq!(sda.model.as_deref(), Some("QEMU HARDDISK"));
        assert_eq!(sda.vendor.as_deref(), Some("ATA"));
        assert_eq!(sda.serial.as_deref(), Some("QM00001"));
        assert_eq!(sda.wwn.as_deref(), Some("0x5000c500a1b2c3d4"));
        assert_eq!(sda.hctl.as_deref(), Some("0:0:0:0"));
        assert_eq!(disks[0].disk.logical_sectors, 4096);
    }

    #[test]
    fn f27_every_form_of_serial_and_wwn_is_kept() {
        let sysfs = machine();
        let disks = list(sysfs.path()).unwrap();
        assert_eq!(
            disks[1].serials,
            ["QM00001", "QEMU_HARDDISK_QM00001", "5000c500a1b2c3d4", "35000c500a1b2c3d4"]
        );
        assert_eq!(disks[1].wwns, ["0x5000c500a1b2c3d4", "naa.5000c500a1b2c3d4"]);
        assert_eq!(disks[0].serials, ["nv-1", "QEMU_NVMe_Ctrl_nv-1"]);
        assert_eq!(disks[0].wwns, ["eui.0025388b710116a1"]);
        assert_eq!(disks[4].serials, ["virtio-serial"]);
        let long = &disks[3];
        assert_eq!(long.disk.wwn.as_deref(), Some("0x600508b1001c0123"));
        assert_eq!(long.disk.wwn_vendor_extension.as_deref(), Some("0x456789abcdef0123"));
        assert_eq!(long.disk.wwn_with_extension.as_deref(), Some("0x600508b1001c0123456789abcdef0123"));
    }

    /// The page "ATA Information" (SAT-4) with this model and serial number.
    fn information_page(model: &str, serial: &str) -> String {
        let mut page = vec!['\0'; 572];
        page[1] = '\u{89}';
        for (first, length, text) in [(27, 40, model), (10, 20, serial)] {
            let padded: Vec<char> = format!("{text:<length$}").chars().collect();
            let start = 60 + 2 * first;
            for (place, pair) in padded.chunks(2).enumerate() {
                page[start + 2 * place] = pair[1];
                page[start + 2 * place + 1] = pair[0];
            }
        }
        page.into_iter().collect()
    }

    #[test]
    fn x04_a_sata_model_of_forty_characters_is_matched_in_the_forms_of_lsblk_and_udev() {
        const MODEL: &str = "SAMSUNG MZ7LH960HAJR-00005 forty letters";
        let sysfs = FakeSysfs::new();
        let page = information_page(MODEL, "S45NNC0R100001");
        let attributes = [
            ("device/model", "SAMSUNG MZ7LH960\n"),
            ("device/vendor", "ATA     \n"),
            ("device/vpd_pg80", "\0\u{80}\0\u{14}      S45NNC0R100001"),
            ("device/vpd_pg89", page.as_str()),
        ];
        sysfs.disk("devices/pci0/ata1/host0/target0:0:0/0:0:0:0/block/sda", 40 << 30, &attributes);
        let disks = list(sysfs.path()).unwrap();
        assert_eq!(disks[0].disk.model.as_deref(), Some(MODEL));
        for (hint, value, expected) in [
            ("model", MODEL, true),
            ("model", "SAMSUNG_MZ7LH960HAJR-00005_forty_letters", true),
            ("model", "SAMSUNG MZ7LH960", true),
            ("model", "<in> HAJR-00005", true),
            ("model", "<or> other <or> samsung mz7lh960", true),
            ("model", "SAMSUNG MZ7LH480", false),
            ("model", "s!= SAMSUNG MZ7LH480", true),
            // It is this model, whichever form says so.
            ("model", "s!= SAMSUNG MZ7LH960", false),
            ("model", "s!= SAMSUNG MZ7LH960HAJR-00005 forty letters", false),
            ("serial", "S45NNC0R100001", true),
            ("serial", "SAMSUNG_MZ7LH960HAJR-00005_forty_letters_S45NNC0R100001", true),
            ("serial", "SAMSUNG_MZ7LH960_S45NNC0R100001", true),
        ] {
            let hints = Hints::parse(&serde_json::json!({hint: value})).unwrap();
            assert_eq!(hints.mismatch(&disks[0]).is_none(), expected, "{hint} {value}");
        }
    }

    #[test]
    fn x04_long_serials_are_those_of_udev_on_every_bus() {
        let sysfs = FakeSysfs::new();
        let nvme = [("device/model", "Fast  One\n"), ("device/serial", "nv-1\n"), ("nsid", "1\n")];
        sysfs.disk("devices/pci0/nvme/nvme0/nvme0n1", 10 << 30, &nvme);
        let scsi = [
            ("device/model", "QEMU HARDDISK   \n"),
            ("device/vendor", "QEMU    \n"),
            ("device/vpd_pg80", "\0\u{80}\0\u{4}SN-1"),
            ("device/wwid", "t10.QEMU    QEMU HARDDISK   SN-1\n"),
        ];
        sysfs.disk("devices/pci0/host1/target1:0:0/1:0:0:0/block/sda", 10 << 30, &scsi);
        let usb = [
            ("device/model", "Ultra Fit\n"),
            ("device/vendor", "SanDisk\n"),
            ("device/scsi_device/9:0:0:0/uevent", ""),
            ("../../../../../../idVendor", "0781\n"),
            ("../../../../../../serial", "4C530001\n"),
        ];
        let path = "devices/pci0/usb1/1-1/1-1:1.0/host9/target9:0:0/9:0:0:0/block/sdb";
        sysfs.disk(path, 10 << 30, &usb);
        let disks = list(sysfs.path()).unwrap();
        for (index, wanted) in [
            (0, "Fast_One_nv-1"),
            (0, "Fast_One_nv-1_1"),
            (1, "0QEMU_QEMU_HARDDISK_SN-1"),
            (1, "SQEMU_QEMU_HARDDISK_SN-1"),
            (1, "1QEMU_QEMU_HARDDISK_SN-1"),
            (2, "4C530001"),
            (2, "SanDisk_Ultra_Fit_4C530001-0:0"),
        ] {
            assert!(disks[index].serials.iter().any(|serial| serial == wanted), "{:?}", disks[index].serials);
        }
    }

    #[test]
    fn d31_only_disks_are_listed() {
        let sysfs = FakeSysfs::new();
        for name in [
            "fd0",
            "ram0",
            "zram1",
            "loop7",
            "sr0",
            "dm-3",
            "mtdblock0",
            "ubiblock0_1",
            "bcache0",
            "drbd1",
            "zd16",
            "nullb0",
            "mmcblk0rpmb",
        ] {
            sysfs.disk(&format!("devices/virtual/block/{name}"), 5 << 30, &[]);
        }
        sysfs.disk("devices/a/block/sde", 0, &[]);
        sysfs.disk("devices/a/block/sdf", 5 << 30, &[("device/type", "5\n")]);
        sysfs.disk("devices/a/block/nvme0c0n1", 5 << 30, &[("hidden", "1\n")]);
        sysfs.disk("devices/virtual/block/md126", 5 << 30, &[("md/level", "raid1\n")]);
        sysfs.disk("devices/virtual/block/md127", 5 << 30, &[("md/level", "container\n")]);
        sysfs.disk("devices/a/block/cciss!c0d0", 5 << 30, &[]);
        let disks = list(sysfs.path()).unwrap();
        let names: Vec<_> = disks.iter().map(|device| device.disk.name.as_str()).collect();
        assert_eq!(names, ["/dev/cciss/c0d0", "/dev/md126"]);
    }

    #[test]
    fn d31_storage_of_every_kind_is_listed() {
        let sysfs = FakeSysfs::new();
        let names = [
            "fda",
            "mmcblk0",
            "mmcblk0boot0",
            "mmcblk0gp0",
            "nbd0",
            "nvme0n1",
            "pmem0",
            "pmem1s",
            "rbd0",
            "sda",
            "srx",
            "vda",
            "xvda",
        ];
        for name in names {
            let zoned = [("queue/zoned", "host-managed\n"), ("ro", "1\n")];
            sysfs.disk(&format!("devices/a/block/{name}"), 5 << 30, &zoned);
        }
        let listed = list(sysfs.path()).unwrap();
        assert_eq!(listed.iter().map(BlockDevice::kernel_name).collect::<Vec<_>>(), names);
        let areas = listed.iter().filter(|device| device.hardware_partition().is_some());
        assert_eq!(areas.map(BlockDevice::kernel_name).collect::<Vec<_>>(), ["mmcblk0boot0", "mmcblk0gp0"]);
    }

    #[test]
    fn x03_disks_without_a_size_are_known_and_empty_drives_are_none() {
        let sysfs = FakeSysfs::new();
        let real = ("device/type", "0\n");
        sysfs.disk("devices/a/block/sda", 5 << 30, &[real]);
        sysfs.disk("devices/a/block/sdb", 0, &[real, ("removable", "0\n")]);
        sysfs.disk("devices/a/block/sdc", 0, &[real, ("removable", "1\n")]);
        sysfs.disk("devices/a/block/nvme0n1", 0, &[("device/model", "M\n")]);
        sysfs.disk("devices/virtual/block/nbd0", 0, &[]);
        let found = without_size(sysfs.path()).unwrap();
        let names: Vec<_> = found.iter().map(|device| device.disk.name.as_str()).collect();
        assert_eq!(names, ["/dev/nvme0n1", "/dev/sdb"]);
        assert_eq!(list(sysfs.path()).unwrap().len(), 1);
    }

    #[test]
    fn d23_a_multipath_device_stands_for_its_paths() {
        let sysfs = FakeSysfs::new();
        sysfs.disk("devices/virtual/dm-0", 5 << 30, &[("dm/uuid", "mpath-3600508b1001c0123")]);
        for (path, host) in [("sda", "host1"), ("sdb", "host2")] {
            let class = format!("../../fc_host/{host}/uevent");
            let attributes = &[
                ("device/wwid", "naa.600508b1001c0123"),
                ("device/vpd_pg80", "\0\u{80}\0\u{4}SN-1"),
                (class.as_str(), ""),
            ];
            sysfs.disk(&format!("devices/{host}/rport-1/{path}"), 5 << 30, attributes);
            sysfs.stack(&format!("devices/{host}/rport-1/{path}"), "devices/virtual/dm-0");
        }
        sysfs.disk("devices/virtual/dm-1", 5 << 30, &[("dm/uuid", "LVM-x")]);
        let disks = list(sysfs.path()).unwrap();
        let names: Vec<_> = disks.iter().map(|device| device.disk.name.as_str()).collect();
        assert_eq!(names, ["/dev/dm-0"]);
        assert_eq!(disks[0].disk.serial.as_deref(), Some("SN-1"));
        assert_eq!(disks[0].disk.wwn.as_deref(), Some("0x600508b1001c0123"));
        assert_eq!(disks[0].disk.tran.as_deref(), Some("fc"));
    }

    #[test]
    fn a_missing_sysfs_is_an_error() {
        assert!(matches!(list(Path::new("/nonexistent")), Err(Error::Device { .. })));
    }
}
