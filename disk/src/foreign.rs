//! A volume that somebody else made, read and never changed.
//!
//! Readers of file systems follow chains and folders as the volume has them, and one that leads back to itself
//! is followed for ever. So what is read has a budget, whatever reads it.

use std::cell::Cell;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Bytes of folders and tables that are read of a volume; 20 000 files with the longest names have fewer.
const STRUCTURE: u64 = 16 << 20;

/// How often FAT has a byte of them read: the root folder for the label and for what it holds, a byte of a table
/// for both of its entries.
const READ_BY_FAT: u64 = 2;

/// Bytes of contents for which one byte of tables is read, with the smallest clusters.
const CONTENTS_PER_TABLE: u64 = 64;

/// What may still be read of a volume, in bytes.
#[derive(Debug)]
pub struct Budget {
    left: Cell<u64>,
    /// What of it is for the contents of files and was not given to one yet.
    contents: Cell<u64>,
}

impl Budget {
    /// For a volume whose files are `contents` bytes together at most.
    pub fn of(contents: u64) -> Self {
        Self { left: Cell::new(STRUCTURE), contents: Cell::new(contents) }
    }

    /// The same for a FAT volume of `size` bytes, which has no more folders and tables than bytes.
    ///
    /// In ISO 9660 many names may go on in the same place, which is read for each.
    pub fn of_fat(size: u64, contents: u64) -> Self {
        let left = size.saturating_mul(READ_BY_FAT).min(STRUCTURE);
        Self { left: Cell::new(left), ..Self::of(contents) }
    }

    /// Lets a file of this many bytes be read.
    ///
    /// # Errors
    ///
    /// The files are larger together than they can be: some lie in the same place.
    pub fn grant(&self, bytes: u64) -> io::Result<()> {
        let rest = self.contents.get().checked_sub(bytes);
        let rest = rest.ok_or_else(|| io::Error::other("its files are larger together than it can hold"))?;
        self.contents.set(rest);
        self.left.set(self.left.get().saturating_add(bytes).saturating_add(bytes / CONTENTS_PER_TABLE));
        Ok(())
    }

    fn spend(&self, bytes: u64) -> io::Result<()> {
        let rest = self.left.get().checked_sub(bytes);
        self.left.set(rest.ok_or_else(|| io::Error::other("a folder or table in it has no end"))?);
        Ok(())
    }
}

/// The volume, as something that `fatfs` and others read.
#[derive(Debug)]
pub struct Foreign<'a, T> {
    volume: &'a mut T,
    budget: &'a Budget,
}

impl<'a, T: Seek> Foreign<'a, T> {
    /// The volume from its start.
    ///
    /// # Errors
    ///
    /// Whatever the first seek brings.
    pub fn new(volume: &'a mut T, budget: &'a Budget) -> io::Result<Self> {
        volume.rewind()?;
        Ok(Self { volume, budget })
    }
}

impl<T: Read> Read for Foreign<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.volume.read(buffer)?;
        self.budget.spend(count as u64)?;
        Ok(count)
    }
}

impl<T: Seek> Seek for Foreign<'_, T> {
    fn seek(&mut self, target: SeekFrom) -> io::Result<u64> {
        self.volume.seek(target)
    }
}

impl<T> Write for Foreign<'_, T> {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Volumes such as nobody honest makes, for tests.
#[cfg(any(test, feature = "memory"))]
#[allow(clippy::unwrap_used)]
pub mod volumes {
    use fatfs::{FatType, FileSystem, FormatVolumeOptions, FsOptions};
    use std::io::{Cursor, Write};

    /// Sectors, and bytes of a cluster, of the volumes made here.
    const SECTOR: usize = 512;
    /// Entries that are free tell no reader anything, so that none of its own bounds ends it.
    const FREE_ENTRY: u8 = 0xe5;

    type Volume = Cursor<Vec<u8>>;

    /// A new volume with the smallest clusters.
    pub fn formatted(bytes: usize, kind: FatType) -> Volume {
        let mut volume = Cursor::new(vec![0; bytes]);
        let options = FormatVolumeOptions::new().fat_type(kind).bytes_per_cluster(SECTOR as u32);
        fatfs::format_volume(&mut volume, options).unwrap();
        volume.set_position(0);
        volume
    }

    /// Offsets of the first table and of the first cluster.
    fn places(volume: &Volume) -> (usize, usize) {
        let boot = volume.get_ref();
        let number = |offset: usize| usize::from(u16::from_le_bytes([boot[offset], boot[offset + 1]]));
        let table = number(14) * SECTOR;
        let sectors = if number(22) == 0 { number(36) | number(38) << 16 } else { number(22) };
        (table, table + usize::from(boot[16]) * sectors * SECTOR + number(17) * 32)
    }

    /// A FAT32 volume whose root folder is one cluster of free entries that is its own successor.
    pub fn endless_root() -> Volume {
        let mut volume = formatted(40 << 20, FatType::Fat32);
        let (table, first) = places(&volume);
        let content = volume.get_mut();
        content[table + 2 * 4..][..4].copy_from_slice(&2_u32.to_le_bytes());
        content[first..first + SECTOR].fill(FREE_ENTRY);
        volume
    }

    /// A FAT16 volume with such a folder in its root.
    pub fn endless_folder() -> Volume {
        let mut volume = formatted(4 << 20, FatType::Fat16);
        FileSystem::new(&mut volume, FsOptions::new()).unwrap().root_dir().create_dir("EFI").unwrap();
        let (table, first) = places(&volume);
        let content = volume.get_mut();
        content[table + 2 * 2..][..2].copy_from_slice(&2_u16.to_le_bytes());
        content[first..first + SECTOR].fill(FREE_ENTRY);
        volume.set_position(0);
        volume
    }

    /// A volume of 4 MiB with this many files of 200 KB, all in the place of the first one.
    pub fn same_place(files: usize) -> Volume {
        let mut volume = formatted(4 << 20, FatType::Fat16);
        {
            let fat = FileSystem::new(&mut volume, FsOptions::new()).unwrap();
            for number in 0..files {
                let mut file = fat.root_dir().create_file(&format!("F{number}")).unwrap();
                let length = if number == 0 { 200_000 } else { 1 };
                file.write_all(&vec![7; length]).unwrap();
            }
        }
        let (_, first) = places(&volume);
        let content = volume.get_mut();
        let root = &mut content[first - 512 * 32..first];
        // Long names take entries too.
        let mut places = root.chunks_mut(32).filter(|entry| entry[0] == b'F' && entry[11] != 0x0f);
        let place = places.next().unwrap()[20..].to_vec();
        places.for_each(|entry| entry[20..].copy_from_slice(&place));
        volume.set_position(0);
        volume
    }
}
