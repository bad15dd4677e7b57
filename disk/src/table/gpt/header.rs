//! The header of a GPT: checked before anything believes it.

use super::super::crc32;
use super::field;
use std::ops::Range;

/// Bytes of an entry. Other sizes are legal and never used.
pub const ENTRY_SIZE: usize = 128;

/// Most entries a table may have; disks hold what their last owner wrote.
const MAX_ENTRIES: u32 = 1024;

/// A primary header, kept as its sector so that unknown bytes survive.
#[derive(Debug, Clone)]
pub struct Header {
    sector: Vec<u8>,
}

impl Header {
    /// Whether `sector` says that it is a GPT header.
    pub fn has_signature(sector: &[u8]) -> bool {
        sector.starts_with(field::MARK)
    }

    /// Checks the header in the second sector of a disk of `disk_sectors` sectors.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(sector: &[u8], disk_sectors: u64) -> Result<Self, String> {
        let header = Self { sector: sector.to_vec() };
        let size = header.u32(field::SIZE);
        if size < field::SMALLEST || size as usize > sector.len() {
            return Err(format!("the GPT header claims a size of {size} bytes"));
        }
        if header.computed_crc() != header.u32(field::CRC) {
            return Err("the checksum of the GPT header is wrong".to_owned());
        }
        if header.u32(field::ENTRY_SIZE) as usize != ENTRY_SIZE {
            return Err(format!(
                "the GPT has entries of {} bytes instead of 128",
                header.u32(field::ENTRY_SIZE)
            ));
        }
        let count = header.u32(field::ENTRY_COUNT);
        if count == 0 || count > MAX_ENTRIES {
            return Err(format!("the GPT claims {count} entries"));
        }
        let entries_end = header.entries_lba().checked_add(header.entries_sectors());
        let ranges_fit = header.own_lba() == 1
            && header.entries_lba() >= 2
            && entries_end.is_some_and(|end| end <= header.first_usable())
            && header.first_usable() <= header.last_usable()
            && header.last_usable() < disk_sectors;
        if !ranges_fit {
            return Err("the GPT describes ranges that overlap or lie outside the disk".to_owned());
        }
        Ok(header)
    }

    /// Makes the table cover a disk of `disk_sectors` sectors, its backup at the end.
    pub fn fit_to(&mut self, disk_sectors: u64) {
        let last = disk_sectors - 1;
        self.set_u64(field::OTHER_LBA, last);
        self.set_u64(field::LAST_USABLE, last - self.entries_sectors() - 1);
        self.seal();
    }

    /// The header of the backup that belongs to this primary.
    pub fn backup(&self) -> Self {
        let mut backup = self.clone();
        backup.set_u64(field::OWN_LBA, self.u64(field::OTHER_LBA));
        backup.set_u64(field::OTHER_LBA, self.own_lba());
        backup.set_u64(field::ENTRIES_LBA, self.last_usable() + 1);
        backup.seal();
        backup
    }

    /// What the `gpt` crate has to know of entries that are all it gets.
    pub fn of_entries(&self) -> ::gpt::header::Header {
        ::gpt::header::Header {
            signature: String::new(),
            revision: (1, 0),
            header_size_le: field::SMALLEST,
            crc32: 0,
            reserved: 0,
            current_lba: self.own_lba(),
            backup_lba: self.u64(field::OTHER_LBA),
            first_usable: self.first_usable(),
            last_usable: self.last_usable(),
            disk_guid: uuid::Uuid::nil(),
            part_start: 0,
            num_parts: self.u32(field::ENTRY_COUNT),
            part_size: ENTRY_SIZE as u32,
            crc32_parts: self.entries_crc(),
        }
    }

    /// Sector of this header.
    pub fn own_lba(&self) -> u64 {
        self.u64(field::OWN_LBA)
    }

    /// First sector a partition may use.
    pub fn first_usable(&self) -> u64 {
        self.u64(field::FIRST_USABLE)
    }

    /// Last sector a partition may use.
    pub fn last_usable(&self) -> u64 {
        self.u64(field::LAST_USABLE)
    }

    /// First sector of the entry array.
    pub fn entries_lba(&self) -> u64 {
        self.u64(field::ENTRIES_LBA)
    }

    /// Bytes of the entry array.
    pub fn entries_length(&self) -> usize {
        self.u32(field::ENTRY_COUNT) as usize * ENTRY_SIZE
    }

    /// Checksum the entry array must have.
    pub fn entries_crc(&self) -> u32 {
        self.u32(field::ENTRIES_CRC)
    }

    /// Records the checksum of a changed entry array.
    pub fn set_entries_crc(&mut self, crc: u32) {
        self.sector[field::ENTRIES_CRC].copy_from_slice(&crc.to_le_bytes());
        self.seal();
    }

    /// The sector as it goes to the disk.
    pub fn to_sector(&self) -> &[u8] {
        &self.sector
    }

    fn entries_sectors(&self) -> u64 {
        (self.entries_length() as u64).div_ceil(self.sector.len() as u64)
    }

    fn seal(&mut self) {
        let crc = self.computed_crc();
        self.sector[field::CRC].copy_from_slice(&crc.to_le_bytes());
    }

    fn computed_crc(&self) -> u32 {
        let mut header = self.sector[..self.u32(field::SIZE) as usize].to_vec();
        header[field::CRC].fill(0);
        crc32(&header)
    }

    fn u32(&self, field: Range<usize>) -> u32 {
        u32::from_le_bytes(self.sector[field].try_into().expect("the field has 4 bytes"))
    }

    fn u64(&self, field: Range<usize>) -> u64 {
        u64::from_le_bytes(self.sector[field].try_into().expect("the field has 8 bytes"))
    }

    fn set_u64(&mut self, field: Range<usize>, value: u64) {
        self.sector[field].copy_from_slice(&value.to_le_bytes());
    }
}
