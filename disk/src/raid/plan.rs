//! Which partitions and arrays a configuration comes to on given disks. Nothing is written here.
//!
//! Every disk of a volume gives it a partition of the same place in the order; numbers and places are
//! counted for each disk by itself (D24). Before the first one there is room for what the firmware boots.

use crate::device::BlockDevice;
use crate::error::Error;
use crate::md::config::{Level, RaidConfig, Size, Volume};
use crate::table::reach::{MBR_PARTITIONS, MBR_SECTORS, MIB, TAIL};
use crate::table::{NewPartition, Partition, PartitionKind, TableKind, types};
use uuid::Uuid;

/// Where the first partition begins that is no boot partition.
const START_UEFI: u64 = 551 * MIB;
const START_BIOS_GPT: u64 = 8 * MIB;
const START_MBR: u64 = MIB;

/// Partitions for the firmware, from the first MiB on (section 7.5).
const ESP_SIZE: u64 = 550 * MIB;
const BIOS_BOOT_SIZE: u64 = 2 * MIB;

/// How the deployed system will boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boot {
    /// Whether by UEFI.
    pub is_uefi: bool,
    /// Kind of the tables; UEFI has GPT alone.
    pub table: TableKind,
}

impl Boot {
    /// By UEFI, or by BIOS from tables of this kind.
    pub fn new(is_uefi: bool, table: TableKind) -> Self {
        Self { is_uefi, table: if is_uefi { TableKind::Gpt } else { table } }
    }
}

/// A disk as the plan sees it.
#[derive(Debug, Clone)]
pub struct Disk {
    /// The disk.
    pub device: BlockDevice,
    /// Its partitions that must stay as they are.
    pub kept: Vec<Partition>,
}

/// The volumes to make.
#[derive(Debug)]
pub struct Plan {
    /// The new partitions of each disk, in the order of the disks.
    pub partitions: Vec<Vec<NewPartition>>,
    /// The arrays, in the order in which they are made.
    pub arrays: Vec<PlannedArray>,
}

/// An array to be.
#[derive(Debug, PartialEq, Eq)]
pub struct PlannedArray {
    /// Number of the device, `/dev/md<number>`.
    pub number: u32,
    /// Name in the superblocks.
    pub name: String,
    /// Level.
    pub level: Level,
    /// Its members: place of the disk in the list, and number of the partition.
    pub members: Vec<(usize, u32)>,
}

/// The disks of each volume of `config`, as places in `devices` (section 9.9).
///
/// # Errors
///
/// [`Error::InvalidRaidConfig`] naming the hints that no disk satisfies, or the missing disks.
pub fn choose_disks(config: &RaidConfig, devices: &[BlockDevice]) -> Result<Vec<Vec<usize>>, Error> {
    config.volumes.iter().map(|volume| disks_of(volume, devices)).collect()
}

fn disks_of(volume: &Volume, devices: &[BlockDevice]) -> Result<Vec<usize>, Error> {
    let mut chosen: Vec<usize> = Vec::new();
    for hints in &volume.disks {
        let mut free = devices.iter().enumerate().filter(|(index, _)| !chosen.contains(index));
        let fitting = free.find(|(_, device)| hints.mismatch(device).is_none());
        let (index, _) = fitting.ok_or_else(|| {
            let known: Vec<_> = devices.iter().map(|device| device.disk.name.as_str()).collect();
            invalid(format!("none of the disks {} that are left satisfies {hints}", known.join(", ")))
        })?;
        chosen.push(index);
    }
    if volume.disks.is_empty() {
        chosen = (0..devices.len()).collect();
    }
    let (found, fewest) = (chosen.len(), volume.level.fewest_members());
    if found < fewest {
        let level = volume.level.number();
        return Err(invalid(format!("RAID level {level} needs {fewest} disks, and there are {found}")));
    }
    Ok(chosen)
}

/// Plans the volumes of `config` that are not among `kept` by name, each on its disks of `chosen`.
/// `numbers` yields numbers of devices that are free.
///
/// # Errors
///
/// [`Error::Raid`] naming a disk that is too small, or that has no room in its table.
pub fn plan(
    config: &RaidConfig,
    chosen: &[Vec<usize>],
    disks: &[Disk],
    kept: &[String],
    boot: Boot,
    numbers: impl Iterator<Item = u32>,
) -> Result<Plan, Error> {
    let is_new = |volume: &Volume| volume.name.as_ref().is_none_or(|name| !kept.contains(name));
    let volumes = config.volumes.iter().zip(chosen).filter(|(volume, _)| is_new(volume));
    let mut layouts: Vec<_> = disks.iter().map(|disk| DiskLayout::new(disk, boot)).collect();
    let mut arrays = Vec::new();
    for ((volume, places), number) in volumes.zip(numbers) {
        let member = |place: &usize| Ok((*place, layouts[*place].add_member(volume.size)?));
        let members = places.iter().map(member).collect::<Result<_, Error>>()?;
        arrays.push(PlannedArray { number, name: volume.name_or(number), level: volume.level, members });
    }
    for (index, layout) in layouts.iter_mut().enumerate() {
        layout.add_boot_partition(boot, index)?;
    }
    Ok(Plan { partitions: layouts.into_iter().map(|layout| layout.added).collect(), arrays })
}

/// The partitions of one disk while they are laid out.
struct DiskLayout<'a> {
    disk: &'a Disk,
    table: TableKind,
    /// Where the first partition begins that is no boot partition.
    base: u64,
    added: Vec<NewPartition>,
}

impl<'a> DiskLayout<'a> {
    fn new(disk: &'a Disk, boot: Boot) -> Self {
        let table = match disk.kept.first().map(|partition| &partition.kind) {
            Some(PartitionKind::Gpt { .. }) => TableKind::Gpt,
            Some(PartitionKind::Mbr { .. }) => TableKind::Mbr,
            None => boot.table,
        };
        let base = match (boot.is_uefi, table) {
            (true, _) => START_UEFI,
            (false, TableKind::Gpt) => START_BIOS_GPT,
            (false, TableKind::Mbr) => START_MBR,
        };
        Self { disk, table, base, added: Vec::new() }
    }

    /// Adds a member and gives its number: in the first gap that is large enough, or in all of the largest
    /// one. The first partition of a disk ends at its size, counted from the start of the disk, as that of
    /// other agents does.
    fn add_member(&mut self, size: Size) -> Result<u32, Error> {
        let gaps = self.gaps();
        let end = |start: u64| match size {
            Size::Bytes(bytes) if start == self.base => bytes,
            Size::Bytes(bytes) => start.saturating_add(bytes),
            Size::Rest => start + MIB,
        };
        let mut fitting = gaps.iter().filter(|(start, limit)| (start + MIB..=*limit).contains(&end(*start)));
        let place = match size {
            Size::Bytes(_) => fitting.next().map(|(start, _)| (*start, end(*start))),
            Size::Rest => fitting.max_by_key(|(start, limit)| limit - start).copied(),
        };
        let (start, end) = place.ok_or_else(|| {
            let (wanted, limit) = (end(gaps.last().map_or(self.limit(), |gap| gap.0)) / MIB, self.limit() / MIB);
            self.failed(&format!(
                "its volumes need {wanted} MiB and {limit} MiB of it can be used; ask for less, or name larger disks"
            ))
        })?;
        let kind = self.kind(types::gpt::RAID, types::mbr::RAID);
        self.add(start, end - start, kind, "raid".to_owned())
    }

    /// The free places behind what the firmware boots, in order, aligned.
    fn gaps(&self) -> Vec<(u64, u64)> {
        let kept = self.disk.kept.iter().map(|one| (one.start, one.start + one.size));
        let mut taken: Vec<_> =
            kept.chain(self.added.iter().map(|one| (one.start, one.start + one.size))).collect();
        taken.push((self.limit(), u64::MAX));
        taken.sort_unstable();
        let mut gaps = Vec::new();
        let mut next = self.base;
        for (start, end) in taken {
            let limit = start - start % MIB;
            if limit > next {
                gaps.push((next, limit));
            }
            next = next.max(end.checked_next_multiple_of(MIB).unwrap_or(end));
        }
        gaps
    }

    /// Adds what the firmware boots from, where there is none yet.
    fn add_boot_partition(&mut self, boot: Boot, index: usize) -> Result<(), Error> {
        let (type_guid, size, name) = match (boot.is_uefi, self.table) {
            (true, _) => (types::gpt::ESP, ESP_SIZE, format!("uefi-holder-{index}")),
            (false, TableKind::Gpt) => {
                (types::gpt::BIOS_BOOT, BIOS_BOOT_SIZE, format!("bios-boot-part-{index}"))
            }
            (false, TableKind::Mbr) => return Ok(()),
        };
        let starts_early = |partition: &Partition| partition.start < MIB + size;
        if self.added.is_empty() || self.disk.kept.iter().any(starts_early) {
            return Ok(());
        }
        let kind = self.kind(type_guid, types::mbr::ESP);
        self.add(MIB, size, kind, name).map(drop)
    }

    fn add(&mut self, start: u64, size: u64, kind: PartitionKind, name: String) -> Result<u32, Error> {
        let is_taken = |number: &u32| {
            self.disk.kept.iter().any(|one| one.number == *number)
                || self.added.iter().any(|one| one.number == *number)
        };
        let number = (1..).find(|number| !is_taken(number)).expect("numbers do not end");
        if self.table == TableKind::Mbr && number > MBR_PARTITIONS as u32 {
            return Err(
                self.failed("its MBR has no room for another partition; set the capability disk_label:gpt")
            );
        }
        self.added.push(NewPartition { number, start, size, kind, is_booted: false, name });
        Ok(number)
    }

    fn kind(&self, type_guid: Uuid, type_id: u8) -> PartitionKind {
        match self.table {
            TableKind::Gpt => PartitionKind::Gpt { type_guid, guid: Uuid::new_v4() },
            TableKind::Mbr => PartitionKind::Mbr { type_id, disk_identifier: 0 },
        }
    }

    /// End of what partitions may use.
    fn limit(&self) -> u64 {
        let size = self.disk.device.disk.size.saturating_sub(TAIL);
        let reach = match self.table {
            TableKind::Gpt => u64::MAX,
            TableKind::Mbr => MBR_SECTORS * u64::from(self.disk.device.disk.logical_sectors) - MIB,
        };
        let limit = size.min(reach);
        limit - limit % MIB
    }

    fn failed(&self, reason: &str) -> Error {
        Error::Raid { device: self.disk.device.disk.name.clone().into(), reason: reason.to_owned() }
    }
}

fn invalid(reason: String) -> Error {
    Error::InvalidRaidConfig { reason }
}

#[cfg(test)]
mod tests;
