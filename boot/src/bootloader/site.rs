//! Where a deployed system lies: what has to be known before its file systems are mounted, when the disk can no
//! longer be held.

use crate::error::Error;
use farrier_disk::table::{self, Partition, PartitionTable};
use farrier_disk::{RootDisk, Sectors};
use std::path::PathBuf;

/// The only type of file system that firmware reads (UEFI 2.10, section 13.3).
const ESP_KIND: &str = "vfat";

/// A file system of the deployed system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Device node of its partition.
    pub device: PathBuf,
    /// Type, as the kernel calls it.
    pub kind: String,
    /// Its own identity, if it has one.
    pub uuid: Option<String>,
    /// The identity of its partition.
    pub partuuid: String,
}

/// The disk of a deployed system.
#[derive(Debug)]
pub struct Site {
    /// Device node.
    pub disk: PathBuf,
    /// The root file system.
    pub root: Volume,
    /// The EFI system partition.
    pub esp: Option<Volume>,
    /// Every file system on the disk.
    pub volumes: Vec<Volume>,
    /// What a boot loader for BIOS goes onto: the disk, those that it is made of, or the PReP partition.
    pub targets: Vec<PathBuf>,
    /// Every block device that the system may know of.
    pub blocks: Vec<PathBuf>,
    /// Whether the disk holds code that a BIOS runs. That of an array is never run.
    pub has_boot_code: bool,
}

impl Site {
    /// Looks at the disk, and lets go of it.
    ///
    /// # Errors
    ///
    /// [`Error::BiosOnly`] or [`Error::BootLoader`] when there is no such root file
    /// system, or what opening and reading the disk bring.
    pub fn survey(
        root: &RootDisk,
        root_uuid: &str,
        prep_uuid: Option<&str>,
        is_uefi: bool,
    ) -> Result<Self, Error> {
        root.require_partition_nodes()?;
        let disk = root.open()?;
        let table = PartitionTable::read(&disk)?;
        let volumes =
            table.partitions().iter().map(|one| volume(&disk, one)).collect::<Result<Vec<_>, _>>()?;
        let find = |uuid: &str| volumes.iter().find(|volume| volume.is_called(uuid));
        let missing = |what: &str, uuid: &str| Error::BootLoader {
            device: disk.path().to_owned(),
            action: format!("looking for the {what} {uuid}"),
            reason: "no partition of the disk has this identity".to_owned(),
        };
        let has_boot_code = !root.is_array() && table::has_boot_code(&disk)?;
        let found = find(root_uuid).cloned().ok_or_else(|| match is_uefi && has_boot_code {
            true => Error::BiosOnly { device: disk.path().to_owned() },
            false => missing("root file system", root_uuid),
        })?;
        let targets = match prep_uuid {
            Some(uuid) => vec![find(uuid).ok_or_else(|| missing("PReP partition", uuid))?.device.clone()],
            None => root.boot_disks().into_iter().map(|disk| PathBuf::from(disk.disk.name)).collect(),
        };
        let esp_number = table.esp().map(|esp| table::partition_path(disk.path(), esp.number));
        let is_esp = |volume: &&Volume| Some(&volume.device) == esp_number.as_ref();
        // What it holds is mounted without anybody's consent, and firmware reads nothing else (S10).
        let esp = volumes.iter().find(is_esp).filter(|esp| esp.kind == ESP_KIND).cloned();
        let (disk, blocks) = (disk.path().to_owned(), root.block_devices());
        Ok(Self { disk, root: found, esp, volumes, targets, blocks, has_boot_code })
    }

    /// Links by which programs find the file systems by their identities, below the folder of devices.
    pub fn links(&self) -> Vec<(String, PathBuf)> {
        let of = |volume: &Volume| {
            let own = volume.uuid.as_ref().map(|uuid| format!("disk/by-uuid/{uuid}"));
            let partition = format!("disk/by-partuuid/{}", volume.partuuid);
            let names = own.into_iter().chain([partition]);
            names.map(|name| (name, volume.device.clone())).collect::<Vec<_>>()
        };
        self.volumes.iter().flat_map(of).collect()
    }
}

impl Volume {
    /// Whether one of its identities is this one.
    fn is_called(&self, uuid: &str) -> bool {
        let own = self.uuid.as_deref().into_iter().chain([self.partuuid.as_str()]);
        own.into_iter().any(|own| own.eq_ignore_ascii_case(uuid))
    }

    /// Its identity as `/etc/fstab` has it.
    pub fn fstab_name(&self) -> String {
        match &self.uuid {
            Some(uuid) => format!("UUID={uuid}"),
            None => format!("PARTUUID={}", self.partuuid),
        }
    }
}

fn volume(disk: &dyn Sectors, partition: &Partition) -> Result<Volume, Error> {
    let found = disk.signatures(partition.start, partition.size)?.into_iter().next();
    let (kind, uuid) = found.map_or_else(Default::default, |found| (found.kind, found.uuid));
    let device = table::partition_path(disk.path(), partition.number);
    Ok(Volume { device, kind, uuid, partuuid: partition.partuuid() })
}
