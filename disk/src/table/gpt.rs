//! GUID partition tables.
//!
//! The `gpt` crate makes new tables, and decodes and encodes the entries of those that are there. The header of a
//! table that is there is read and written here, byte for byte, because the crate panics on entries of another size
//! than 128, allocates as much as a header claims, refuses headers of more than 92 bytes, and writes partitions
//! one after the other, whatever their numbers were (those of cloud images are 1, 14, 15). A test shows each of
//! these.

pub mod field;
mod header;

use super::reach::MIB;
use super::{
    Geometry, NewPartition, ParseError, Partition, PartitionKind, crc32, first_sector, hybrid, read_exact_at,
    types,
};
use crate::error::Error;
use crate::io::Sectors;
use crate::io::view::DiskView;
use ::gpt::disk::LogicalBlockSize;
use ::gpt::mbr::ProtectiveMBR;
use ::gpt::partition::{Partition as Entry, file_read_partitions};
use ::gpt::partition_types::{OperatingSystem, Type};
use ::gpt::{GptConfig, GptError};
use header::{ENTRY_SIZE, Header};
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use uuid::Uuid;

/// Where the protective MBR keeps the number of sectors that it covers.
const PROTECTIVE_SIZE: u64 = (first_sector::ENTRIES + first_sector::SECTORS) as u64;

/// A valid GPT.
#[derive(Debug)]
pub struct Gpt {
    header: Header,
    /// The entry array as on the disk.
    entries: Vec<u8>,
    partitions: Vec<Partition>,
}

impl Gpt {
    /// Reads the primary table; nothing when there is none.
    ///
    /// # Errors
    ///
    /// [`ParseError`].
    pub fn parse(source: &mut (impl Read + Seek), geometry: Geometry) -> Result<Option<Self>, ParseError> {
        let sector_size = u64::from(geometry.sector_size);
        if geometry.size < 3 * sector_size {
            return Ok(None);
        }
        let mut sector = vec![0; geometry.sector_size as usize];
        read_exact_at(source, sector_size, &mut sector)?;
        if !Header::has_signature(&sector) {
            return match other_sector_size(source, geometry)? {
                Some(other) => Err(ParseError::Invalid(format!(
                    "it was made for sectors of {other} bytes, the disk has {sector_size}; use an image for this disk"
                ))),
                None => Ok(None),
            };
        }
        let header = Header::parse(&sector, geometry.size / sector_size).map_err(ParseError::Invalid)?;
        let mut entries = vec![0; header.entries_length()];
        read_exact_at(source, header.entries_lba() * sector_size, &mut entries)?;
        if crc32(&entries) != header.entries_crc() {
            return Err(ParseError::Invalid("the checksum of the GPT entries is wrong".to_owned()));
        }
        let partitions = parse_entries(&entries, &header, sector_size).map_err(ParseError::Invalid)?;
        Ok(Some(Self { header, entries, partitions }))
    }

    /// Writes the table with nothing but the partitions `kept`, as they are, and those `added`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidTable`] or [`Error::Device`].
    pub fn rearrange(
        &mut self,
        disk: &dyn Sectors,
        kept: &[Partition],
        added: &[NewPartition],
    ) -> Result<(), Error> {
        self.fit_to(disk)?;
        for (number, entry) in (1..).zip(self.entries.chunks_exact_mut(ENTRY_SIZE)) {
            if kept.iter().all(|partition| partition.number != number) {
                entry.fill(0);
            }
        }
        self.fill(added, disk.sector_size()).map_err(|source| not_written(disk, source))?;
        self.write(disk)
    }

    /// The partitions, by number.
    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    /// Puts the backup table into the last sectors of the disk and has both headers agree (D05).
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn move_backup_to_end(&mut self, disk: &dyn Sectors) -> Result<(), Error> {
        self.fit_to(disk)?;
        self.write(disk)
    }

    /// Adds a partition of `size` bytes at the end of the disk.
    ///
    /// # Errors
    ///
    /// [`Error::NoPlaceForConfigDrive`] or [`Error::Device`].
    pub fn add_at_end(&mut self, disk: &dyn Sectors, size: u64) -> Result<Partition, Error> {
        let no_place =
            |reason: String| Error::NoPlaceForConfigDrive { device: disk.path().to_owned(), reason };
        self.fit_to(disk)?;
        let sector_size = u64::from(disk.sector_size());
        let usable = self.header.first_usable() * sector_size..(self.header.last_usable() + 1) * sector_size;
        let start = place_at_end(usable, size, &self.partitions).map_err(no_place)?;
        let slot = self.entries.chunks_exact(ENTRY_SIZE).position(is_unused).ok_or_else(|| {
            no_place("every entry of the GPT is used; remove a partition from the image".to_owned())
        })?;
        let (number, guid) = (slot as u32 + 1, Uuid::new_v4());
        let kind = PartitionKind::Gpt { type_guid: types::gpt::LINUX, guid };
        let new = NewPartition { number, start, size, kind, is_booted: false, name: String::new() };
        self.fill(std::slice::from_ref(&new), disk.sector_size())
            .map_err(|source| not_written(disk, source))?;
        self.write(disk)?;
        Ok(Partition { number, start, size, kind: new.kind })
    }

    fn fit_to(&mut self, disk: &dyn Sectors) -> Result<(), Error> {
        let sector_size = u64::from(disk.sector_size());
        self.header.fit_to(disk.size() / sector_size);
        let end = (self.header.last_usable() + 1) * sector_size;
        match self.partitions.iter().find(|partition| partition.start + partition.size > end) {
            None => Ok(()),
            Some(partition) => Err(Error::InvalidTable {
                device: disk.path().to_owned(),
                reason: format!(
                    "partition {} leaves no room for the backup GPT at the end",
                    partition.number
                ),
            }),
        }
    }

    /// Puts each partition into the entry of its number.
    fn fill(&mut self, partitions: &[NewPartition], sector_size: u32) -> io::Result<()> {
        let mut entries = Cursor::new(&mut self.entries[..]);
        for (number, entry) in new_entries(partitions, sector_size) {
            let index = u64::from(number) - 1;
            entry.write_to_device(&mut entries, index, 0, LogicalBlockSize::Lb512, ENTRY_SIZE as u32)?;
        }
        Ok(())
    }

    /// Writes backup, then primary: whatever interrupts it, one of them is valid.
    fn write(&mut self, disk: &dyn Sectors) -> Result<(), Error> {
        self.header.set_entries_crc(crc32(&self.entries));
        let sector_size = u64::from(disk.sector_size());
        let (primary, backup) = (self.header.clone(), self.header.backup());
        let mut view = DiskView::whole(disk);
        let mut write_copy = |header: &Header| -> io::Result<()> {
            view.seek(SeekFrom::Start(header.entries_lba() * sector_size))?;
            view.write_all(&self.entries)?;
            view.seek(SeekFrom::Start(header.own_lba() * sector_size))?;
            view.write_all(header.to_sector())?;
            view.flush()
        };
        write_copy(&backup)
            .and_then(|()| disk.flush().map_err(io::Error::other))
            .and_then(|()| write_copy(&primary))
            .and_then(|()| update_protective_mbr(disk))
            .map_err(|source| not_written(disk, source))
    }
}

/// Writes a new table to a disk that has none, with partitions whose numbers have no gaps. The protective MBR comes
/// last: without it neither firmware nor kernel believes a GPT, and both copies are on stable storage before.
///
/// # Errors
///
/// [`Error::Device`]; also for sectors of other sizes than 512 and 4096 bytes.
pub fn write_new(disk: &dyn Sectors, partitions: &[NewPartition]) -> Result<(), Error> {
    let write = || -> io::Result<()> {
        let sector_size = LogicalBlockSize::try_from(u64::from(disk.sector_size()))?;
        let config = GptConfig::new().writable(true).logical_block_size(sector_size);
        let mut table = config.create_from_device(DiskView::whole(disk), None).map_err(into_io)?;
        table.update_partitions(new_entries(partitions, disk.sector_size()).collect()).map_err(into_io)?;
        let mut view = table.write().map_err(into_io)?;
        disk.flush().map_err(io::Error::other)?;
        let sectors = disk.size() / sector_size.as_u64() - 1;
        let protective = ProtectiveMBR::with_lb_size(u32::try_from(sectors).unwrap_or(u32::MAX));
        protective.overwrite_lba0(&mut view).map_err(io::Error::other).map(drop)
    };
    write().map_err(|source| not_written(disk, source))
}

/// The entries of new partitions, by number.
fn new_entries(partitions: &[NewPartition], sector_size: u32) -> impl Iterator<Item = (u32, Entry)> {
    let sector_size = u64::from(sector_size);
    partitions.iter().filter_map(move |partition| {
        let PartitionKind::Gpt { type_guid, guid } = partition.kind else { return None };
        let entry = Entry {
            part_type_guid: Type { guid: type_guid, os: OperatingSystem::None },
            part_guid: guid,
            first_lba: partition.start / sector_size,
            last_lba: (partition.start + partition.size) / sector_size - 1,
            flags: 0,
            name: partition.name.clone(),
        };
        Some((partition.number, entry))
    })
}

fn not_written(disk: &dyn Sectors, source: io::Error) -> Error {
    Error::Device { device: disk.path().to_owned(), action: "writing its GPT".to_owned(), source }
}

fn into_io(error: GptError) -> io::Error {
    match error {
        GptError::Io(error) => error,
        other => io::Error::other(other),
    }
}

/// Start in bytes of a partition of `size` bytes as far back in `usable` as alignment allows.
///
/// # Errors
///
/// The reason why it does not fit.
pub fn place_at_end(
    usable: std::ops::Range<u64>,
    size: u64,
    partitions: &[Partition],
) -> Result<u64, String> {
    let start = usable.end.checked_sub(size).map(|start| start - start % MIB);
    let taken = partitions.iter().map(|partition| partition.start + partition.size).max().unwrap_or(0);
    start.filter(|start| *start >= usable.start && *start >= taken).ok_or_else(|| {
        format!(
            "{} MiB are needed at the end of the disk behind its partitions; use a larger disk or a smaller image",
            size >> 20
        )
    })
}

/// The sector size of a GPT that was made for another kind of disk.
fn other_sector_size(source: &mut (impl Read + Seek), geometry: Geometry) -> io::Result<Option<u64>> {
    let own = u64::from(geometry.sector_size);
    for other in [512, 4096].into_iter().filter(|other| *other != own && other + 512 <= geometry.size) {
        let mut start = [0; 512];
        read_exact_at(source, other, &mut start)?;
        if Header::has_signature(&start) {
            return Ok(Some(other));
        }
    }
    Ok(None)
}

fn is_unused(entry: &[u8]) -> bool {
    entry[..16].iter().all(|byte| *byte == 0)
}

/// The partitions in an entry array that has the header's checksum.
fn parse_entries(entries: &[u8], header: &Header, sector_size: u64) -> Result<Vec<Partition>, String> {
    // What is decoded is these bytes, wherever they lie on the disk; their number was checked.
    let found =
        file_read_partitions(&mut Cursor::new(entries), &header.of_entries(), LogicalBlockSize::Lb512);
    let found = found.map_err(|error| error.to_string())?;
    let used = found.into_iter().filter(|(_, entry)| entry.is_used());
    used.map(|(number, entry)| {
        let (first, last) = (entry.first_lba, entry.last_lba);
        if first < header.first_usable() || last < first || last > header.last_usable() {
            return Err(format!("partition {number} lies outside the usable range"));
        }
        let kind = PartitionKind::Gpt { type_guid: entry.part_type_guid.guid, guid: entry.part_guid };
        let (start, size) = (first * sector_size, (last - first + 1) * sector_size);
        Ok(Partition { number, start, size, kind })
    })
    .collect()
}

/// Has the protective MBR cover the whole disk, where there is one that stands alone.
fn update_protective_mbr(disk: &dyn Sectors) -> io::Result<()> {
    let mut view = DiskView::whole(disk);
    if !hybrid::is_alone(&first_sector::read(&mut view, disk.size())?) {
        return Ok(());
    }
    let sectors = disk.size() / u64::from(disk.sector_size()) - 1;
    view.seek(SeekFrom::Start(PROTECTIVE_SIZE))?;
    view.write_all(&u32::try_from(sectors).unwrap_or(u32::MAX).to_le_bytes())?;
    view.flush()
}
