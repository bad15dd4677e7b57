//! The media that this ramdisk came from, among the disks of the machine: a stick with its ISO, virtual media of a BMC
//! that appear as disks, and a stick from which firmware started a unified kernel image.
//!
//! What a disk holds proves nothing: tenants write labels and copy images. Such a medium is a disk on USB, and the
//! kernel command line of this boot, or the firmware, says that there is one. An internal disk is never one.

use crate::device::BlockDevice;
use crate::probe::ReadableDisk;
use crate::table::Partition;
use farrier_linux::drive::{self, Drive};
use farrier_linux::efivars::EfiVariables;
use farrier_linux::kernel_line::{self, Parameters};
use farrier_media::ramdisk_media::{Inserted, Purpose};
use farrier_media::volume::Volume;
use serde::Serialize;
use std::fmt;
use std::fs::File;
use std::path::Path;

/// The variable in which systemd's stub and boot loader leave the partition that firmware started them from (Boot
/// Loader Interface).
const LOADER_PARTITION: &str = "LoaderDevicePartUUID-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
/// Attribute of variables that outlive a reboot: whoever had the machine before may have left such a one.
const NON_VOLATILE: u32 = 1;

/// What of a machine belongs to the ramdisk that runs on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BootMedium {
    /// The ramdisk was booted from it.
    Ramdisk,
    /// The agent has parameters from it.
    Parameters,
    /// It looks like such a medium, and so does another disk.
    Doubtful,
}

impl fmt::Display for BootMedium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ramdisk => "the medium that this ramdisk was booted from",
            Self::Parameters => "the medium with the agent's parameters",
            Self::Doubtful => {
                "one of several disks that look like the medium that this ramdisk was booted from; \
                 disconnect that medium, or put it on skip_block_devices"
            }
        })
    }
}

/// The media, by the kernel names of their disks.
#[derive(Debug, Clone, Default)]
pub(super) struct BootMedia(Vec<(String, BootMedium)>);

impl BootMedia {
    /// Those of this boot.
    pub fn of_this_boot() -> Self {
        Self::find(Path::new("/sys"), &kernel_line::of_running_kernel(), loader_partition().as_deref())
    }

    /// Those of a boot with these kernel parameters, where a loader has left the identity of its partition.
    pub fn find(sysfs: &Path, kernel: &Parameters, loader_partition: Option<&str>) -> Self {
        if !Purpose::Ramdisk.is_expected(kernel) && loader_partition.is_none() {
            return Self::default();
        }
        let drives = drive::list(sysfs);
        let mut media = Self::default();
        let read = |drive: &Drive| Volume::read(&mut File::open(&drive.device).ok()?).ok().flatten();
        let volumes: Vec<_> = drives.iter().filter_map(|drive| Some((drive, read(drive)?))).collect();
        let inserted: Vec<_> = volumes
            .iter()
            .map(|(drive, volume)| Inserted {
                volume,
                model: &drive.model,
                is_optical: drive.is_optical,
                may_be_virtual: drive.may_be_virtual(),
            })
            .collect();
        for (purpose, medium) in
            [(Purpose::Parameters, BootMedium::Parameters), (Purpose::Ramdisk, BootMedium::Ramdisk)]
        {
            let serving = purpose.served_by(&inserted, kernel).into_iter().map(|number| volumes[number].0);
            media.add(&serving.collect::<Vec<_>>(), medium);
        }
        if let Some(partition) = loader_partition {
            let has_it = |drive: &&Drive| has_partition(sysfs, drive, partition);
            media.add(&drives.iter().filter(has_it).collect::<Vec<_>>(), BootMedium::Ramdisk);
        }
        media
    }

    /// Notes the disks that serve as one medium.
    fn add(&mut self, serving: &[&Drive], medium: BootMedium) {
        let medium = if serving.len() > 1 { BootMedium::Doubtful } else { medium };
        for drive in serving.iter().filter(|drive| !drive.is_optical) {
            if medium == BootMedium::Doubtful {
                tracing::warn!("{} is {medium}", drive.device.display());
            }
            self.0.push((drive.kernel_name.clone(), medium));
        }
    }

    /// What a disk is of them. One that certainly is a medium is not doubtful for another purpose.
    pub fn medium(&self, device: &BlockDevice) -> Option<BootMedium> {
        let found = self.0.iter().filter(|(name, _)| name == device.kernel_name());
        let found: Vec<_> = found.map(|(_, medium)| *medium).collect();
        found.iter().find(|medium| **medium != BootMedium::Doubtful).or(found.first()).copied()
    }
}

/// The identity of the partition from which firmware started the loader of this boot.
fn loader_partition() -> Option<String> {
    partition_in(&EfiVariables::system()?)
}

fn partition_in(variables: &EfiVariables) -> Option<String> {
    let variable = variables.read(LOADER_PARTITION).ok()??;
    if variable.attributes & NON_VOLATILE != 0 {
        return None;
    }
    let units: Vec<_> =
        variable.data.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    let text = String::from_utf16(&units).ok()?;
    let text = text.trim_end_matches('\0');
    (!text.is_empty()).then(|| text.to_lowercase())
}

fn has_partition(sysfs: &Path, drive: &Drive, identity: &str) -> bool {
    let device = BlockDevice::describe(sysfs, &drive.kernel_name);
    let table = device.and_then(|device| ReadableDisk::open(&device)?.table());
    let is_it = |partition: &Partition| partition.partuuid().eq_ignore_ascii_case(identity);
    table.is_ok_and(|table| table.partitions().iter().any(is_it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::fake_machine::FakeMachine;
    use crate::guard::{Criteria, KeepReason, Obstacle};
    use farrier_protocol::lookup::Node;
    use serde_json::json;

    const ISO: &str = "farrier-boot-medium=iso";
    const VMEDIA: &str = "boot_method=vmedia";

    /// What lies at 32 KiB of a volume of ISO 9660 with this label, made by this program.
    fn descriptor(label: &str, application: &str) -> Vec<u8> {
        let mut bytes = vec![b' '; 2048];
        bytes[..8].copy_from_slice(b"\x01CD001\x01\0");
        bytes[40..40 + label.len()].copy_from_slice(label.as_bytes());
        bytes[574..574 + application.len()].copy_from_slice(application.as_bytes());
        bytes
    }

    /// The first sector of a FAT volume with this label.
    fn floppy(label: &[u8; 11]) -> Vec<u8> {
        let mut sector = vec![0; 512];
        sector[43..54].copy_from_slice(label);
        sector[54..59].copy_from_slice(b"FAT16");
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        sector
    }

    const USB: &str = "pci0/usb1/1-1/1-1:1.0/host9/target9:0:0/9:0:0:0/block";
    const SATA: &str = "pci0/ata1/host0/target0:0:0/0:0:0:0/block";

    /// A disk: bus, name, size in GiB, and what is at this offset.
    type Disk<'a> = (&'a str, &'a str, u64, (u64, &'a [u8]));

    /// A machine with these disks, and what is known of its media.
    fn machine(disks: &[Disk<'_>], line: &str) -> (FakeMachine, BootMedia) {
        let machine = FakeMachine::new();
        for (bus, name, gib, content) in disks {
            machine.add_at(bus, name, gib << 30, &[("ro", "1\n"), ("device/type", "0\n")], &[*content]);
        }
        let media = BootMedia::find(machine.sysfs.path(), &kernel_line::parse(line), None);
        (machine, media)
    }

    fn found(disks: &[Disk<'_>], line: &str) -> Vec<Option<BootMedium>> {
        let (machine, media) = machine(disks, line);
        disks.iter().map(|(_, name, ..)| media.medium(&machine.device(name))).collect()
    }

    #[test]
    fn a06_g02_a_medium_is_on_usb_and_this_boot_came_from_one() {
        let ours = descriptor("FARRIER", "FARRIER-IMAGE");
        let boot_iso = descriptor("VMEDIA_BOOT_ISO", "");
        let (iso, boot, parameters) = ((32768, &ours[..]), (32768, &boot_iso[..]), floppy(b"IR-VFD-DEV "));
        let parameters = (0, &parameters[..]);
        let ramdisk = Some(BootMedium::Ramdisk);
        for (disks, line, expected) in [
            // A stick of any size, on the way from which the kernel came.
            (&[(USB, "sda", 8, iso), (SATA, "sdb", 480, (0, &[][..]))][..], ISO, &[ramdisk, None][..]),
            (&[(USB, "sda", 8, iso)], "ipa-api-url=http://x", &[None]),
            (&[(USB, "sda", 8, iso)], "farrier-boot-medium=other", &[None]),
            // A tenant that copies the image to an internal disk gains nothing.
            (&[(SATA, "sda", 8, iso), (USB, "sdb", 8, iso)], ISO, &[None, ramdisk]),
            (&[(SATA, "sda", 8, iso)], ISO, &[None]),
            // Virtual media that appear as disks.
            (
                &[(USB, "sda", 1, boot), (USB, "sdb", 1, parameters)],
                VMEDIA,
                &[ramdisk, Some(BootMedium::Parameters)],
            ),
            (&[(SATA, "sda", 1, boot), (SATA, "sdb", 1, parameters)], VMEDIA, &[None, None]),
            // No BMC has a virtual floppy of that size.
            (&[(USB, "sda", 8, parameters), (USB, "sdb", 8, boot)], VMEDIA, &[None, None]),
            (&[(USB, "sda", 1, parameters)], ISO, &[None]),
            // The first one is not true: none is.
            (&[(USB, "sda", 8, iso), (USB, "sdb", 16, iso)], ISO, &[Some(BootMedium::Doubtful); 2]),
        ] {
            assert_eq!(found(disks, line), expected, "{line}");
        }
    }

    #[test]
    fn a06_a_disk_that_looks_like_the_medium_in_an_optical_drive_is_none() {
        let ours = descriptor("FARRIER", "FARRIER-IMAGE");
        let machine = FakeMachine::new();
        machine.add_at(USB, "sda", 8 << 30, &[("device/type", "0\n")], &[(32768, &ours)]);
        machine.add_at("pci0/ata2/host1/block", "sr0", 1 << 30, &[("device/type", "5\n")], &[(32768, &ours)]);
        let media = BootMedia::find(machine.sysfs.path(), &kernel_line::parse(ISO), None);
        assert_eq!(media.medium(&machine.device("sda")), None);
    }

    #[test]
    fn a06_the_medium_is_not_the_root_disk_unless_hints_mean_it_alone_and_never_erased() {
        let ours = descriptor("FARRIER", "FARRIER-IMAGE");
        let disks = [(USB, "sda", 8, (32768, &ours[..])), (SATA, "sdb", 480, (0, &[][..]))];
        let (machine, media) = machine(&disks, ISO);
        std::fs::write(machine.device("sda").directory().join("serial"), "STICK").unwrap();
        let devices = ["sda", "sdb"].map(|name| machine.device(name));
        let name = devices[0].disk.name.clone();
        let excluded = |hints: serde_json::Value| {
            let properties = serde_json::from_value(json!({"root_device": hints})).unwrap();
            let mut criteria = Criteria::of(&Node { properties, ..Node::default() }).unwrap();
            criteria.skip_list.media = media.clone();
            let chosen = criteria.choose(&devices).map(|device| machine.shortened(&device.disk.name));
            (criteria.exclusion(&devices[0]), chosen)
        };
        let medium = Some(Obstacle::BootMedium(BootMedium::Ramdisk));
        for (hints, expected, chosen) in [
            (json!({}), medium.clone(), Some("sdb")),
            (json!({"size": ">= 4"}), medium.clone(), Some("sdb")),
            // The name is that of the first disk, which may be any.
            (json!({"name": name}), medium.clone(), None),
            (json!({"serial": "STICK"}), None, Some("sda")),
            (json!({"serial": "s!= OTHER"}), medium, Some("sdb")),
        ] {
            assert_eq!(excluded(hints.clone()), (expected, chosen.map(str::to_owned)), "{hints}");
        }

        let mut skip_list = crate::guard::SkipList::of(&Node::default()).unwrap();
        skip_list.media = media;
        // A medium that cannot be written is kept as one, and no failure.
        assert_eq!(skip_list.reason(&devices[0]), Some(KeepReason::BootMedium(BootMedium::Ramdisk)));
        assert!(skip_list.excludes(&devices[0]) && skip_list.excludes_from_raid(&devices[0]));
        assert!(!skip_list.excludes(&devices[1]) && !skip_list.excludes_from_raid(&devices[1]));
    }

    #[test]
    fn a06_a_partition_is_that_of_the_loader_by_a_variable_that_no_reboot_outlives() {
        let folder = tempfile::tempdir().unwrap();
        let variables = EfiVariables::at(folder.path());
        assert_eq!(partition_in(&variables), None);
        let text: Vec<u8> = "0A4C41CF-01\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (attributes, expected) in [(6_u32, Some("0a4c41cf-01")), (7, None)] {
            let content = [&attributes.to_le_bytes()[..], &text].concat();
            std::fs::write(folder.path().join(LOADER_PARTITION), content).unwrap();
            assert_eq!(partition_in(&variables).as_deref(), expected);
        }
        let mut table = vec![0; 512];
        table[440..444].copy_from_slice(&0x0a4c_41cf_u32.to_le_bytes());
        table[450] = 0x0c;
        table[454..458].copy_from_slice(&2048_u32.to_le_bytes());
        table[458..462].copy_from_slice(&8192_u32.to_le_bytes());
        table[510..].copy_from_slice(&[0x55, 0xaa]);
        let machine = FakeMachine::new();
        machine.add_at(USB, "sda", 8 << 30, &[], &[(0, &table)]);
        machine.add_at(SATA, "sdb", 8 << 30, &[], &[(0, &table)]);
        let media = |partition| BootMedia::find(machine.sysfs.path(), &Parameters::new(), Some(partition));
        assert_eq!(media("0a4c41cf-01").medium(&machine.device("sda")), Some(BootMedium::Ramdisk));
        assert_eq!(media("0a4c41cf-01").medium(&machine.device("sdb")), None);
        assert_eq!(media("0a4c41cf-02").medium(&machine.device("sda")), None);
    }
}
