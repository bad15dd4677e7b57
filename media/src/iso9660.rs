//! Writes file systems of ISO 9660 (ECMA-119, interchange level 2) that firmware boots (El Torito).
//!
//! Times are zero and the order is that of the names, so that the same files give the same bytes. Every
//! file is one extent. Names are kept in upper case; Linux and boot loaders show them in lower case.

mod directory;
mod format;

use crate::Overlay;
use crate::ramdisk_media::APPLICATION;
use bytes::Bytes;
use directory::{FileExtent, Layout};
pub use format::SECTOR;
use format::both_u16;
pub(crate) use format::both_u32;
use std::collections::BTreeMap;

/// Where volume descriptors begin.
const DESCRIPTORS: u32 = 16;
const LITTLE_PATH_TABLE: u32 = DESCRIPTORS + 3;
const BIG_PATH_TABLE: u32 = LITTLE_PATH_TABLE + 1;
const CATALOG: u32 = BIG_PATH_TABLE + 1;
const DIRECTORIES: u32 = CATALOG + 1;
const MEBIBYTE: u64 = 1 << 20;

/// A file that firmware starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootEntry {
    /// For which kind of firmware.
    pub platform: Platform,
    /// Path of the file in the volume.
    pub path: &'static str,
}

/// Kinds of firmware, by their number in El Torito.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// Starts the file's first four sectors of 512 bytes, which load the rest.
    Bios,
    /// Takes the file for an EFI system partition.
    Efi,
}

impl Platform {
    fn number(self) -> u8 {
        match self {
            Self::Bios => 0,
            Self::Efi => 0xef,
        }
    }

    /// Sectors of 512 bytes that the firmware loads, or the size of the partition.
    fn load_count(self, bytes: usize) -> u16 {
        match self {
            Self::Bios => 4,
            Self::Efi => u16::try_from(bytes.div_ceil(512)).unwrap_or(u16::MAX),
        }
    }
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// These bytes.
    Here(Bytes),
    /// So many bytes, which the reader of the medium has from elsewhere.
    Elsewhere(u32),
}

impl Content {
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Here(bytes) => bytes.len(),
            Self::Elsewhere(bytes) => *bytes as usize,
        }
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Here(bytes.into())
    }
}

/// A volume to be written.
#[derive(Debug, Default)]
pub struct Volume {
    /// Its label.
    pub label: &'static str,
    /// Files by path, without leading `/`.
    pub files: BTreeMap<String, Content>,
    /// What firmware starts; the first is for firmware that does not look further.
    pub boot: Vec<BootEntry>,
}

impl Volume {
    /// Where a file begins, in sectors.
    pub fn sector_of(&self, path: &str) -> Option<u32> {
        self.extents().iter().find(|extent| extent.path == path).map(|extent| extent.sector)
    }

    /// Where a file begins, in bytes.
    pub fn place_of(&self, path: &str) -> Option<u64> {
        self.sector_of(path).map(place)
    }

    /// The volume's bytes, with an empty system area, up to the end of a mebibyte.
    pub fn write(&self) -> Overlay {
        let extents = self.extents();
        let layout = self.layout(&extents);
        let end = extents.iter().map(FileExtent::end).max().unwrap_or(layout.end());
        let mut image = Overlay::new(place(end));
        let mut put = |sector: u32, bytes: Bytes| image.put(place(sector), bytes);
        let path_table = layout.path_table(u32::to_le_bytes, u16::to_le_bytes);
        put(DESCRIPTORS, self.primary_descriptor(end, path_table.len(), &layout).into());
        put(DESCRIPTORS + 1, boot_record().into());
        put(DESCRIPTORS + 2, b"\xffCD001\x01".as_slice().into());
        put(LITTLE_PATH_TABLE, path_table.into());
        put(BIG_PATH_TABLE, layout.path_table(u32::to_be_bytes, u16::to_be_bytes).into());
        put(CATALOG, self.boot_catalog(&extents).into());
        for directory in &layout.directories {
            put(directory.sector, layout.records(directory).into());
        }
        for extent in &extents {
            if let Content::Here(bytes) = &self.files[extent.path] {
                put(extent.sector, bytes.clone());
            }
        }
        image.round_up(MEBIBYTE);
        image
    }

    /// Where each file goes: behind the directories, whose size does not depend on it.
    fn extents(&self) -> Vec<FileExtent<'_>> {
        let mut sector = self.layout(&[]).end();
        let mut extents = Vec::new();
        for (path, content) in &self.files {
            let extent = FileExtent { path, sector, bytes: content.length() };
            sector = extent.end();
            extents.push(extent);
        }
        extents
    }

    fn layout<'a>(&'a self, extents: &'a [FileExtent<'a>]) -> Layout<'a> {
        Layout::new(self.files.keys(), extents, DIRECTORIES)
    }

    /// ECMA-119, 8.4.
    fn primary_descriptor(&self, sectors: u32, path_table: usize, layout: &Layout) -> Vec<u8> {
        let mut bytes = b"\x01CD001\x01\0".to_vec();
        bytes.extend([b' '; 32]); // system
        bytes.extend(padded(self.label, 32));
        bytes.extend([0; 8]);
        bytes.extend(both_u32(sectors));
        bytes.extend([0; 32]);
        for number in [1, 1, SECTOR as u16] {
            bytes.extend(both_u16(number)); // volumes in the set, number of this one, block size
        }
        bytes.extend(both_u32(path_table as u32));
        bytes.extend(LITTLE_PATH_TABLE.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(BIG_PATH_TABLE.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(layout.root_record());
        for (text, length) in [
            ("", 128),
            ("FARRIER", 128),
            ("", 128),
            (&APPLICATION.to_ascii_uppercase(), 128),
            ("", 37),
            ("", 37),
            ("", 37),
        ] {
            bytes.extend(padded(text, length)); // set, publisher, preparer, application, file names
        }
        for _ in 0..4 {
            bytes.extend([b'0'; 16]); // no time of creation, change, expiration, effect
            bytes.push(0);
        }
        bytes.push(1); // version of this structure
        bytes
    }

    /// El Torito 1.0, 2.0: the first entry with its check sum, then one section an entry.
    fn boot_catalog(&self, extents: &[FileExtent]) -> Vec<u8> {
        let mut catalog = Vec::new();
        for (index, entry) in self.boot.iter().enumerate() {
            let platform = entry.platform.number();
            if index == 0 {
                catalog.extend([1, platform, 0, 0]);
                catalog.extend([0; 24]);
                // All words of this entry add up to nought; the last is 0xaa55.
                let sum = (1 + (u16::from(platform) << 8)).wrapping_add(0xaa55);
                catalog.extend(sum.wrapping_neg().to_le_bytes());
                catalog.extend([0x55, 0xaa]);
            } else {
                let is_last = index + 1 == self.boot.len();
                catalog.extend([if is_last { 0x91 } else { 0x90 }, platform, 1, 0]);
                catalog.extend([0; 28]);
            }
            let Some(extent) = extents.iter().find(|extent| extent.path == entry.path) else { continue };
            // Bootable, no emulation, default segment, type 0.
            catalog.extend([0x88, 0, 0, 0, 0, 0]);
            catalog.extend(entry.platform.load_count(extent.bytes).to_le_bytes());
            catalog.extend(extent.sector.to_le_bytes());
            catalog.extend([0; 20]);
        }
        catalog
    }
}

/// Where a sector is, in bytes.
fn place(sector: u32) -> u64 {
    u64::from(sector) * SECTOR as u64
}

/// El Torito 1.0, figure 7.
fn boot_record() -> Vec<u8> {
    let mut bytes = b"\0CD001\x01EL TORITO SPECIFICATION".to_vec();
    bytes.resize(0x47, 0);
    bytes.extend(CATALOG.to_le_bytes());
    bytes
}

fn padded(text: &str, length: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(length, b' ');
    bytes
}

#[cfg(test)]
mod tests;
