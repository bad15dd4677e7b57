//! FAT file systems that somebody else made, read as Linux reads them and never changed.
//!
//! Crates for FAT keep to the specification, by which Linux, its formatters and other systems do not: they refuse FAT32
//! with few clusters, clusters of 64 KiB, or volumes whose hints about free clusters are damaged.
//!
//! Chains and folders may lead back to themselves. What is read of folders has a budget, and of a file no more is read
//! than its entry says.

mod boot_sector;
mod name;

use boot_sector::{BootSector, ENTRY, FIRST_CLUSTER, LENGTH, Root, Width};
use name::{DELETED, LongName};
use std::io::{self, Read, Seek, SeekFrom};

/// Most bytes of folders that are read; 20 000 files with the longest names have fewer.
const MOST_FOLDERS: u64 = 16 << 20;
/// Most files and folders, and bytes of all their paths.
const MOST_ENTRIES: usize = 20_000;
const MOST_PATHS: usize = 16 << 20;
/// Bytes of a table that are read at once.
const WINDOW: u64 = 512;

/// Attributes of an entry.
const VOLUME: u8 = 0x08;
const FOLDER: u8 = 0x10;
const LONG_NAME: u8 = 0x0f;

/// A file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its names from the root on, with slashes between.
    pub path: String,
    /// Whether each of these names is one by which a file can be opened.
    pub has_plain_path: bool,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Bytes; zero for a folder.
    pub size: u64,
    /// First cluster of its chain; none below the first cluster of the volume.
    start: u32,
}

/// A FAT volume.
#[derive(Debug)]
pub struct Fat<T> {
    volume: T,
    boot: BootSector,
    /// Offset of a part of the first table, and the part.
    window: Option<(u64, [u8; WINDOW as usize])>,
}

/// How much more of a volume is looked at.
#[derive(Debug)]
struct Budget {
    /// Bytes of folders.
    folders: u64,
    /// Files and folders.
    entries: usize,
    /// Bytes of their paths.
    paths: usize,
}

/// What is done about a folder that cannot be read: an error ends the walk.
pub type OnFault<'a> = dyn FnMut(&str, io::Error) -> io::Result<()> + 'a;

impl<T: Read + Seek> Fat<T> {
    /// Opens the volume at the start of `volume`.
    ///
    /// # Errors
    ///
    /// There is no FAT volume that Linux would mount, or it cannot be read.
    pub fn open(mut volume: T) -> io::Result<Self> {
        let mut sector = [0; LENGTH];
        volume.rewind()?;
        volume.read_exact(&mut sector)?;
        Ok(Self { volume, boot: BootSector::parse(&sector)?, window: None })
    }

    /// Bytes of a logical sector.
    pub fn sector_size(&self) -> u32 {
        self.boot.sector_size
    }

    /// The volume identifier; zero where there is none.
    pub fn identifier(&self) -> u32 {
        self.boot.identifier
    }

    /// The label, padded with blanks: the one in the root folder, else the one in the first sector.
    ///
    /// # Errors
    ///
    /// The root folder cannot be read, or has no end.
    pub fn label(&mut self) -> io::Result<Option<[u8; 11]>> {
        let mut label = None;
        self.folder(self.boot.root, &mut self.budget().folders, &mut |entry, _| {
            if label.is_none() && entry[11] & (VOLUME | FOLDER) == VOLUME && entry[11] != LONG_NAME {
                label = entry.first_chunk().copied();
            }
            Ok(())
        })?;
        Ok(label.or(self.boot.label))
    }

    /// Every file and folder, a folder before what it holds, and nothing that lies in more than `depth` folders.
    ///
    /// # Errors
    ///
    /// The root folder cannot be read, what `on_fault` says about another one, or there is more than a volume holds: a
    /// folder has no end.
    pub fn entries(&mut self, depth: usize, on_fault: &mut OnFault<'_>) -> io::Result<Vec<Entry>> {
        let mut budget = self.budget();
        let mut entries = Vec::new();
        self.list(self.boot.root, None, &mut budget, &mut entries)?;
        let mut next = 0;
        // What a folder holds is put behind the folder, so that all are reached in the order of the walk.
        while next < entries.len() {
            let folder = entries[next].clone();
            next += 1;
            if !folder.is_folder || folder.path.matches('/').count() >= depth {
                continue;
            }
            let mut held = Vec::new();
            match self.list(Root::Chain(folder.start), Some(&folder), &mut budget, &mut held) {
                Err(error) if is_without_end(&error) => return Err(error),
                Err(error) => on_fault(&folder.path, error)?,
                Ok(()) => {}
            }
            entries.splice(next..next, held);
        }
        Ok(entries)
    }

    /// The content of a file, from its start.
    pub fn read(&mut self, file: &Entry) -> Content<'_, T> {
        Content { fat: self, cluster: file.start, offset: 0, left: file.size }
    }

    /// For one walk. No folder lies in the place of another one, so all are no larger than the volume.
    fn budget(&self) -> Budget {
        let fixed = if let Root::Fixed { length, .. } = self.boot.root { length } else { 0 };
        let volume = u64::from(self.boot.clusters) * self.boot.cluster_size + fixed;
        Budget { folders: volume.min(MOST_FOLDERS), entries: MOST_ENTRIES, paths: MOST_PATHS }
    }

    /// Adds the files and folders in one folder.
    fn list(
        &mut self,
        place: Root,
        parent: Option<&Entry>,
        budget: &mut Budget,
        entries: &mut Vec<Entry>,
    ) -> io::Result<()> {
        let is_fat32 = self.boot.width == Width::Fat32;
        let Budget { folders, entries: more, paths } = budget;
        self.folder(place, folders, &mut |entry, name| {
            if entry[11] & VOLUME != 0 || name == "." || name == ".." {
                return Ok(());
            }
            let path = parent.map_or_else(|| name.clone(), |parent| format!("{}/{name}", parent.path));
            let left = (more.checked_sub(1), paths.checked_sub(path.len()));
            let (Some(more_left), Some(paths_left)) = left else {
                return Err(without_end("it holds too many files"));
            };
            (*more, *paths) = (more_left, paths_left);
            let high = if is_fat32 { u16::from_le_bytes([entry[20], entry[21]]) } else { 0 };
            let start = u32::from(u16::from_le_bytes([entry[26], entry[27]])) | u32::from(high) << 16;
            let is_folder = entry[11] & FOLDER != 0;
            let size = u32::from_le_bytes([entry[28], entry[29], entry[30], entry[31]]);
            entries.push(Entry {
                path,
                has_plain_path: parent.is_none_or(|parent| parent.has_plain_path) && is_plain(&name),
                is_folder,
                size: if is_folder { 0 } else { size.into() },
                start,
            });
            Ok(())
        })
    }

    /// Shows the entries of a folder with their names, up to its end. A folder without a chain is empty.
    fn folder(
        &mut self,
        place: Root,
        budget: &mut u64,
        visit: &mut dyn FnMut(&[u8; ENTRY as usize], String) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut long_name = LongName::default();
        let mut place = Some(place);
        while let Some(now) = place {
            let (offset, length, next) = match now {
                Root::Fixed { offset, length } => (offset, length, None),
                Root::Chain(cluster) if cluster < FIRST_CLUSTER => return Ok(()),
                Root::Chain(cluster) => (self.offset_of(cluster)?, self.boot.cluster_size, Some(cluster)),
            };
            *budget = budget.checked_sub(length).ok_or_else(|| without_end("a folder in it has no end"))?;
            let mut bytes = vec![0; length as usize];
            self.volume.seek(SeekFrom::Start(offset))?;
            self.volume.read_exact(&mut bytes)?;
            for entry in bytes.as_chunks::<{ ENTRY as usize }>().0 {
                match entry[0] {
                    0 => return Ok(()),
                    DELETED => long_name = LongName::default(),
                    _ if entry[11] == LONG_NAME => long_name.add(entry),
                    _ => visit(entry, long_name.take(entry))?,
                }
            }
            place = next.map(|cluster| self.successor(cluster)).transpose()?.flatten().map(Root::Chain);
        }
        Ok(())
    }

    fn offset_of(&self, cluster: u32) -> io::Result<u64> {
        self.boot.offset_of(cluster).ok_or_else(|| damaged("a chain of clusters leads out of it"))
    }

    /// The cluster behind another one of a chain; nothing at the end of the chain.
    fn successor(&mut self, cluster: u32) -> io::Result<Option<u32>> {
        let (offset, cluster) = (self.boot.table, u64::from(cluster));
        let (value, bad) = match self.boot.width {
            Width::Fat12 => {
                let pair = u16::from_le_bytes(self.table_bytes(offset + cluster * 3 / 2)?);
                (if cluster % 2 == 0 { pair & 0xfff } else { pair >> 4 }.into(), 0xff7)
            }
            Width::Fat16 => (u16::from_le_bytes(self.table_bytes(offset + cluster * 2)?).into(), 0xfff7),
            Width::Fat32 => {
                (u32::from_le_bytes(self.table_bytes(offset + cluster * 4)?) & 0x0fff_ffff, 0x0fff_fff7)
            }
        };
        match value {
            _ if value >= bad => Ok(None),
            0..FIRST_CLUSTER => Err(damaged("a chain of clusters is cut off")),
            _ => Ok(Some(value)),
        }
    }

    fn table_bytes<const N: usize>(&mut self, offset: u64) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        for (byte, offset) in bytes.iter_mut().zip(offset..) {
            let base = offset - offset % WINDOW;
            let window = match self.window {
                Some((known, window)) if known == base => window,
                _ => {
                    let mut window = [0; WINDOW as usize];
                    self.volume.seek(SeekFrom::Start(base))?;
                    self.volume.read_exact(&mut window)?;
                    self.window = Some((base, window));
                    window
                }
            };
            *byte = window[(offset - base) as usize];
        }
        Ok(bytes)
    }
}

/// The content of a file. It ends where its entry says.
#[derive(Debug)]
pub struct Content<'a, T> {
    fat: &'a mut Fat<T>,
    /// Where it goes on, and how many bytes of the cluster were read.
    cluster: u32,
    offset: u64,
    left: u64,
}

impl<T: Read + Seek> Read for Content<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let cluster_size = self.fat.boot.cluster_size;
        let wanted = self.left.min(buffer.len() as u64);
        if wanted == 0 {
            return Ok(0);
        }
        if self.offset == cluster_size {
            let next = self.fat.successor(self.cluster)?;
            self.cluster = next.ok_or_else(|| damaged("a file in it is shorter than its entry says"))?;
            self.offset = 0;
        }
        let start = self.fat.offset_of(self.cluster)? + self.offset;
        let count = wanted.min(cluster_size - self.offset) as usize;
        self.fat.volume.seek(SeekFrom::Start(start))?;
        self.fat.volume.read_exact(&mut buffer[..count])?;
        self.offset += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}

/// Whether a name is one by which something can be opened (S47).
pub fn is_plain(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0'])
}

fn damaged(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Whatever is wrong besides, a walk ends here.
fn without_end(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::QuotaExceeded, reason)
}

fn is_without_end(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::QuotaExceeded
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod volumes;
