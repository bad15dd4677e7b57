//! GUID partition tables.
//!
//! Read and written here, byte for byte, and not by the `gpt` crate: its writer renumbers partitions
//! whose numbers have gaps (as those of cloud images have: 1, 14, 15) and its reader panics on entries
//! of unusual size. The crate serves the tests as a second opinion.

mod header;

use super::{
    ALIGNMENT, Geometry, NewPartition, ParseError, Partition, PartitionKind, read_at, read_exact_at,
};
use crate::error::Error;
use crate::io::WritableDisk;
use crate::io::view::DiskView;
use header::{ENTRY_SIZE, Header};
use std::io::{self, Read, Seek, SeekFrom, Write};
use uuid::Uuid;

/// Type of a partition with a Linux file system, the one a config drive gets.
const LINUX_DATA: Uuid = Uuid::from_u128(0x0fc63daf_8483_4772_8e79_3d69d8477de4);

/// Where the protective MBR keeps the number of sectors it covers, and its type.
const PROTECTIVE_TYPE_OFFSET: u64 = 450;
const PROTECTIVE_SIZE_OFFSET: u64 = 458;
const PROTECTIVE_TYPE: u8 = 0xee;

/// Where an entry has its name, in UTF-16.
const NAME_OFFSET: usize = 56;

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

    /// A table that is not on a disk yet.
    pub fn new(geometry: Geometry, partitions: &[NewPartition]) -> Self {
        let sector_size = u64::from(geometry.sector_size);
        let header = Header::new(geometry.sector_size, geometry.size / sector_size, Uuid::new_v4());
        let mut entries = vec![0; header.entries_length()];
        fill_entries(&mut entries, partitions, sector_size);
        Self { header, entries, partitions: Vec::new() }
    }

    /// Writes the table with nothing but the partitions `kept`, as they are, and those `added`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidTable`] or [`Error::Device`].
    pub fn rearrange(
        &mut self,
        disk: &WritableDisk,
        kept: &[Partition],
        added: &[NewPartition],
    ) -> Result<(), Error> {
        self.fit_to(disk)?;
        for (number, entry) in (1..).zip(self.entries.chunks_exact_mut(ENTRY_SIZE)) {
            if kept.iter().all(|partition| partition.number != number) {
                entry.fill(0);
            }
        }
        fill_entries(&mut self.entries, added, u64::from(disk.sector_size()));
        self.write(disk)
    }

    /// Writes the table to a disk that has none, with the protective MBR before it.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn write_new(&mut self, disk: &WritableDisk) -> Result<(), Error> {
        self.write(disk)?;
        write_protective_mbr(disk).map_err(|source| Error::Device {
            device: disk.path().to_owned(),
            action: "writing its protective MBR".to_owned(),
            source,
        })
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
    pub fn move_backup_to_end(&mut self, disk: &WritableDisk) -> Result<(), Error> {
        self.fit_to(disk)?;
        self.write(disk)
    }

    /// Adds a partition of `size` bytes at the end of the disk.
    ///
    /// # Errors
    ///
    /// [`Error::NoPlaceForConfigDrive`] or [`Error::Device`].
    pub fn add_at_end(&mut self, disk: &WritableDisk, size: u64) -> Result<Partition, Error> {
        let no_place =
            |reason: String| Error::NoPlaceForConfigDrive { device: disk.path().to_owned(), reason };
        self.fit_to(disk)?;
        let sector_size = u64::from(disk.sector_size());
        let usable = self.header.first_usable() * sector_size..(self.header.last_usable() + 1) * sector_size;
        let start = place_at_end(usable, size, &self.partitions).map_err(no_place)?;
        let slot = self.entries.chunks_exact(ENTRY_SIZE).position(is_unused).ok_or_else(|| {
            no_place("every entry of the GPT is used; remove a partition from the image".to_owned())
        })?;
        let guid = Uuid::new_v4();
        let entry = &mut self.entries[slot * ENTRY_SIZE..(slot + 1) * ENTRY_SIZE];
        entry.fill(0);
        fill_entry(entry, LINUX_DATA, guid, Range { start, size }, sector_size);
        self.write(disk)?;
        Ok(Partition {
            number: slot as u32 + 1,
            start,
            size,
            kind: PartitionKind::Gpt { type_guid: LINUX_DATA, guid },
        })
    }

    fn fit_to(&mut self, disk: &WritableDisk) -> Result<(), Error> {
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

    /// Writes backup, then primary: whatever interrupts it, one of them is valid.
    fn write(&mut self, disk: &WritableDisk) -> Result<(), Error> {
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
            .map_err(|source| Error::Device {
                device: disk.path().to_owned(),
                action: "writing its GPT".to_owned(),
                source,
            })
    }
}

/// A range of the disk, in bytes.
struct Range {
    start: u64,
    size: u64,
}

/// Puts each partition into the entry of its number.
fn fill_entries(entries: &mut [u8], partitions: &[NewPartition], sector_size: u64) {
    for partition in partitions {
        let PartitionKind::Gpt { type_guid, guid } = partition.kind else { continue };
        let slot = entries.chunks_exact_mut(ENTRY_SIZE).nth(partition.number as usize - 1);
        let Some(slot) = slot else { continue };
        slot.fill(0);
        let range = Range { start: partition.start, size: partition.size };
        fill_entry(slot, type_guid, guid, range, sector_size);
        for (place, letter) in slot[NAME_OFFSET..].chunks_exact_mut(2).zip(partition.name.bytes()) {
            place[0] = letter;
        }
    }
}

fn fill_entry(entry: &mut [u8], type_guid: Uuid, guid: Uuid, range: Range, sector_size: u64) {
    entry[..16].copy_from_slice(&type_guid.to_bytes_le());
    entry[16..32].copy_from_slice(&guid.to_bytes_le());
    entry[32..40].copy_from_slice(&(range.start / sector_size).to_le_bytes());
    entry[40..48].copy_from_slice(&((range.start + range.size) / sector_size - 1).to_le_bytes());
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
    let start = usable.end.checked_sub(size).map(|start| start - start % ALIGNMENT);
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

fn parse_entries(entries: &[u8], header: &Header, sector_size: u64) -> Result<Vec<Partition>, String> {
    let guid = |bytes: &[u8]| Uuid::from_slice_le(bytes).expect("an entry's GUID fields are 16 bytes");
    let number =
        |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("an entry's LBA fields are 8 bytes"));
    let mut partitions = Vec::new();
    for (index, entry) in entries.chunks_exact(ENTRY_SIZE).enumerate().filter(|(_, entry)| !is_unused(entry))
    {
        let (first, last) = (number(&entry[32..40]), number(&entry[40..48]));
        if first < header.first_usable() || last < first || last > header.last_usable() {
            return Err(format!("partition {} lies outside the usable range", index + 1));
        }
        partitions.push(Partition {
            number: index as u32 + 1,
            start: first * sector_size,
            size: (last - first + 1) * sector_size,
            kind: PartitionKind::Gpt { type_guid: guid(&entry[..16]), guid: guid(&entry[16..32]) },
        });
    }
    Ok(partitions)
}

/// Writes an MBR that shows one partition over the whole disk to whoever knows no GPT.
fn write_protective_mbr(disk: &WritableDisk) -> io::Result<()> {
    let mut sector = [0; 512];
    // From the second sector, in the old addressing, to its end.
    sector[446..454].copy_from_slice(&[0, 0, 2, 0, PROTECTIVE_TYPE, 0xff, 0xff, 0xff]);
    sector[454] = 1;
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    let mut view = DiskView::whole(disk);
    view.write_all(&sector)?;
    view.flush()?;
    update_protective_mbr(disk)
}

/// Has the protective MBR cover the whole disk, where there is one that stands alone.
fn update_protective_mbr(disk: &WritableDisk) -> io::Result<()> {
    let mut kind = [0];
    read_at(disk, PROTECTIVE_TYPE_OFFSET, &mut kind).map_err(io::Error::other)?;
    if kind[0] != PROTECTIVE_TYPE {
        return Ok(());
    }
    let sectors = disk.size() / u64::from(disk.sector_size()) - 1;
    let mut view = DiskView::whole(disk);
    view.seek(SeekFrom::Start(PROTECTIVE_SIZE_OFFSET))?;
    view.write_all(&u32::try_from(sectors).unwrap_or(u32::MAX).to_le_bytes())?;
    view.flush()
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
