//! SCSI devices that hold data and have no block device.

use super::{Examination, Storage, names_of_controller};
use farrier_linux::sysfs;
use std::path::Path;

/// Peripheral types of disks (SPC-5, section 6.7.2), in decimal as sysfs has them: direct access, optical memory,
/// simplified direct access, and host-managed zoned disks.
const DISKS: [u8; 4] = [0, 7, 14, 20];
/// Other media: tape, write-once, optical card, object storage.
const MEDIA: [(u8, &str); 4] =
    [(1, "tape"), (4, "write-once medium"), (15, "optical card"), (17, "object storage")];
/// Drivers of controllers that keep the members of their volumes to themselves.
const RAID_DRIVERS: [&str; 11] = [
    "3w-9xxx",
    "3w-sas",
    "aacraid",
    "arcmsr",
    "hpsa",
    "megaraid_sas",
    "mpi3mr",
    "mpt2sas",
    "mpt3sas",
    "mptsas",
    "smartpqi",
];

/// Examines the devices in the sysfs mounted at `sysfs`.
pub fn examine(sysfs: &Path, examination: &mut Examination) {
    let devices = sysfs.join("bus/scsi/devices");
    for address in sysfs::entries(&devices) {
        let device = devices.join(&address);
        let Some(kind) = sysfs::number::<u8>(&device, "type") else { continue };
        let text = |name| sysfs::attribute(&device, name).unwrap_or_default();
        let model = format!("{} {}", text("vendor"), text("model"));
        let mut names = vec![address.clone()];
        names.extend(names_of_controller(&device));
        if let Some((_, medium)) = MEDIA.iter().find(|(one, _)| *one == kind) {
            let text = format!("the {medium} drive {address} ({model}) and its media are not erased");
            examination.unseen(Storage::ScsiMedium, names, text);
            continue;
        }
        if !DISKS.contains(&kind) {
            continue;
        }
        if !sysfs::entries(&device.join("block")).is_empty() {
            examination.examined(format!("{address} ({model}): a block device"));
        } else if RAID_DRIVERS.contains(&driver(sysfs, &address).as_str()) && !device.join("driver").exists()
        {
            let text = format!(
                "the disk {address} ({model}) is a member, a spare, or unused in a hardware RAID, and not examined: the \
                 controller erases it"
            );
            examination.unseen(Storage::RaidMember, names, text);
        } else {
            let zoned = if kind == 20 { " (host-managed, which this kernel may not support)" } else { "" };
            let text = format!(
                "the SCSI disk {address} ({model}) has no block device{zoned}: look at the kernel log, replace the disk, \
                 or erase it elsewhere"
            );
            examination.unseen(Storage::ScsiDisk, names, text);
        }
    }
}

/// The driver of the host of a device.
fn driver(sysfs: &Path, address: &str) -> String {
    let host = format!("host{}", address.split(':').next().unwrap_or_default());
    sysfs::attribute(&sysfs.join("class/scsi_host").join(host), "proc_name").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    #[test]
    fn g03_what_holds_data_and_is_no_block_device_is_missed_or_listed() {
        use Storage::*;
        for (kind, driver, is_bound, has_block, expected) in [
            ("0", "ahci", true, true, None),
            ("0", "ahci", false, false, Some(ScsiDisk)),
            ("20", "mpt3sas", true, true, None),
            // The kernel does not support it, so its driver has let it go.
            ("20", "ahci", false, false, Some(ScsiDisk)),
            ("14", "usb-storage", false, false, Some(ScsiDisk)),
            ("0", "mpt3sas", false, false, Some(RaidMember)),
            ("0", "smartpqi", false, false, Some(RaidMember)),
            // Its driver drives it and shows nothing.
            ("0", "mpt3sas", true, false, Some(ScsiDisk)),
            ("1", "mpt3sas", true, false, Some(ScsiMedium)),
            ("17", "qla2xxx", false, false, Some(ScsiMedium)),
            // An enclosure, a RAID controller, a changer, an optical drive, a processor.
            ("13", "mpt3sas", true, false, None),
            ("12", "hpsa", false, false, None),
            ("8", "mpt3sas", false, false, None),
            ("5", "ahci", true, false, None),
            ("3", "megaraid_sas", false, false, None),
        ] {
            let tree = Tree::new();
            let device = format!(
                "{}/host2/target2:0:3/2:0:3:0",
                tree.pci("0000:03:00.0", "0x010700", "0x1000", "0x97")
            );
            tree.write(&format!("{device}/type"), kind);
            tree.write(&format!("{device}/vendor"), "HGST\n");
            tree.write("class/scsi_host/host2/proc_name", driver);
            tree.link("bus/scsi/devices/2:0:3:0", &device);
            tree.link("bus/scsi/devices/target2:0:3", &format!("{device}/.."));
            if is_bound {
                tree.link(&format!("{device}/driver"), "bus/scsi/drivers/sd");
            }
            if has_block {
                tree.write(&format!("{device}/block/sda/size"), "1000");
            }
            let mut found = Examination::default();
            examine(tree.path(), &mut found);
            let kinds: Vec<_> = found.unseen.iter().map(|one| one.storage).collect();
            assert_eq!(kinds, expected.into_iter().collect::<Vec<_>>(), "{kind} {driver}");
            for one in &found.unseen {
                assert_eq!(one.names, ["2:0:3:0", "0000:03:00.0", "1000:97"]);
                assert!(one.text.contains("2:0:3:0 (HGST "), "{one}");
            }
        }
    }
}
