//! What earlier deployments left on the other disks of a machine: cloud-init and Ignition take a config drive wherever it
//! is, the one of the last disk first, and firmware starts the boot loader of any disk. Nothing of it is touched; who
//! deploys is warned.

use super::RootDisk;
use super::skip_list::SkipList;
use crate::device::{BlockDevice, stack};
use crate::error::Error;
use crate::fat::Fat;
use crate::io::part::Part;
use crate::list;
use crate::map::DiskMap;
use crate::probe::lvm;
use crate::table::{self, Geometry, Partition, PartitionKind, types};
use farrier_linux::blkid::{self, Signature};
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

/// Labels by which cloud-init and Ignition find the settings of a system, in lower case.
const SETTINGS: [&str; 2] = ["config-2", "cidata"];
/// How loaders for UEFI are called, and how deep they are looked for.
const LOADER: &str = ".efi";
const DEPTH: usize = 3;

impl RootDisk {
    /// A sentence for each thing on another disk that may be taken for what belongs to the system on this one.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] when the disks cannot be listed.
    pub fn leftovers(&self) -> Result<Vec<String>, Error> {
        let devices = list::list(self.device().sysfs())?;
        Ok(warnings(self.device(), &self.choice.skip_list, &devices))
    }
}

/// As [`RootDisk::leftovers`], for the disk that would be chosen among `devices`.
pub(super) fn warnings(root: &BlockDevice, skip_list: &SkipList, devices: &[BlockDevice]) -> Vec<String> {
    let below = stack::below(root.directory());
    let is_replaced = |device: &BlockDevice| {
        device == root || below.iter().any(|disk| disk.file_name() == device.directory().file_name())
    };
    let others =
        devices.iter().filter(|device| !is_replaced(device) && skip_list.media.medium(device).is_none());
    others.flat_map(|device| on(device).unwrap_or_default()).collect()
}

/// What lies on a disk. One that cannot be read tells nothing.
fn on(device: &BlockDevice) -> io::Result<Vec<String>> {
    let path = Path::new(&device.disk.name);
    let mut file = File::open(path)?;
    let geometry = Geometry { size: device.disk.size, sector_size: device.disk.logical_sectors };
    let map = DiskMap::read_file(&mut file, path, geometry).map_err(io::Error::other)?;
    let table = map.live().map(|table| table.partitions().to_vec()).unwrap_or_default();
    let mut found = Vec::new();
    let whole = Partition::at(0, geometry.size);
    for volume in std::iter::once(&whole).chain(&table) {
        let name = match volume.number {
            0 => path.to_owned(),
            number => table::partition_path(path, number),
        };
        let place = name.display().to_string();
        found.extend(settings(&file, volume.start, volume.size, &place));
        let mut reader = BufReader::new(&file);
        for logical in lvm::logical_volumes(&mut reader, volume.start, volume.size)? {
            let place = format!("the logical volume {} on {place}", logical.name);
            found.extend(settings(&file, volume.start + logical.start, logical.size, &place));
        }
        if is_esp(volume) && has_loader(&file, volume).unwrap_or(false) {
            found.push(format!(
                "{place} is an EFI system partition with boot loaders of another system, which the firmware may \
                 start instead of the new one; erase that disk if it is not needed"
            ));
        }
    }
    Ok(found)
}

/// The warning about a volume that has settings of a system.
fn settings(file: &File, start: u64, size: u64, place: &str) -> Option<String> {
    let is_settings = |signature: &Signature| {
        let label = signature.label.as_deref().unwrap_or_default();
        SETTINGS.iter().any(|known| label.eq_ignore_ascii_case(known))
    };
    let found = blkid::signatures(file, start, size).ok()?.into_iter().find(is_settings)?;
    Some(format!(
        "{place} has the label {}, and the new system may take its settings from there instead of its own config \
         drive; erase that disk if it is not needed",
        found.label.unwrap_or_default()
    ))
}

fn is_esp(partition: &Partition) -> bool {
    match partition.kind {
        PartitionKind::Gpt { type_guid, .. } => type_guid == types::gpt::ESP,
        PartitionKind::Mbr { type_id, .. } => type_id == types::mbr::ESP,
    }
}

fn has_loader(file: &File, esp: &Partition) -> io::Result<bool> {
    let entries = Fat::open(Part::of(file, esp.start, esp.size))?.entries(DEPTH, &mut |_, _| Ok(()))?;
    Ok(entries.iter().any(|entry| !entry.is_folder && entry.path.to_lowercase().ends_with(LOADER)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::fake_machine::FakeMachine;
    use crate::probe::lvm::tests::{DATA, group_with, write_volume};
    use farrier_protocol::lookup::Node;
    use fatfs::{FileSystem, FsOptions};
    use std::io::{Cursor, Write};

    const MIB: usize = 1 << 20;

    /// The beginning of a volume of ISO 9660 with this label, from byte 32768 on.
    fn iso(label: &str) -> Vec<u8> {
        let volume = farrier_media::iso9660::Volume { label: "FARRIER", files: [].into(), boot: Vec::new() };
        let mut bytes = volume.write().to_vec();
        bytes.truncate(256 << 10);
        bytes[32808..32815].fill(b' ');
        bytes[32808..32808 + label.len()].copy_from_slice(label.as_bytes());
        bytes
    }

    /// A FAT volume of 4 MiB with a file.
    fn fat(path: &str) -> Vec<u8> {
        let mut volume = Cursor::new(vec![0; 4 * MIB]);
        fatfs::format_volume(&mut volume, fatfs::FormatVolumeOptions::new()).unwrap();
        volume.set_position(0);
        {
            let fat = FileSystem::new(&mut volume, FsOptions::new()).unwrap();
            let (folder, name) = path.rsplit_once('/').unwrap();
            let folder =
                folder.split('/').fold(fat.root_dir(), |parent, one| parent.create_dir(one).unwrap());
            folder.create_file(name).unwrap().write_all(b"MZ").unwrap();
        }
        volume.into_inner()
    }

    /// A disk with one partition of this type from its second MiB on.
    fn partitioned(kind: u8, content: &[u8]) -> Vec<u8> {
        let mut disk = vec![0; 16 * MIB];
        disk[450] = kind;
        disk[454..458].copy_from_slice(&2048_u32.to_le_bytes());
        disk[458..462].copy_from_slice(&16_384_u32.to_le_bytes());
        disk[510..512].copy_from_slice(&[0x55, 0xaa]);
        disk[MIB..MIB + content.len()].copy_from_slice(content);
        disk
    }

    /// A disk that is a physical volume, in whose second extent a logical volume with this content begins.
    fn in_lvm(content: &[u8]) -> Vec<u8> {
        let mut disk = vec![0; 16 * MIB];
        write_volume(&mut disk, 0, &group_with("settings", 1));
        disk[DATA + 4 * MIB..DATA + 4 * MIB + content.len()].copy_from_slice(content);
        disk
    }

    fn told(content: &[u8]) -> Vec<String> {
        let machine = FakeMachine::new();
        machine.add("vda", &[], &[(0, &iso("config-2"))]);
        machine.add("vdb", &[], &[(0, content)]);
        let devices = ["vda", "vdb"].map(|name| machine.device(name));
        let skip_list = SkipList::of(&Node::default()).unwrap();
        let found = warnings(&devices[0], &skip_list, &devices);
        found.iter().map(|text| machine.shortened(text)).collect()
    }

    #[test]
    fn a17_settings_and_loaders_on_other_disks_are_told_wherever_they_lie() {
        for (content, expected) in [
            (iso("config-2"), Some("vdb has the label config-2")),
            (iso("CIDATA"), Some("vdb has the label CIDATA")),
            (partitioned(0x83, &iso("CONFIG-2")), Some("vdb1 has the label CONFIG-2")),
            (in_lvm(&iso("config-2")), Some("the logical volume settings on vdb has the label config-2")),
            (
                partitioned(0xef, &fat("EFI/debian/shimx64.efi")),
                Some("vdb1 is an EFI system partition with boot"),
            ),
            // These are nobody's settings, and no loader.
            (iso("DATA"), None),
            (partitioned(0x83, &fat("EFI/debian/shimx64.efi")), None),
            (partitioned(0xef, &fat("EFI/debian/readme.txt")), None),
            (in_lvm(b""), None),
            (Vec::new(), None),
        ] {
            let found = told(&content);
            assert_eq!(found.len(), usize::from(expected.is_some()), "{found:?}");
            assert!(
                expected.is_none_or(|text| found[0].contains(text) && found[0].contains("erase that disk"))
            );
        }
    }
}
