//! Directories and path tables of ISO 9660.

use std::collections::BTreeSet;

use super::format::{SECTOR, both_u16, both_u32};

/// Where a file's content is.
#[derive(Debug, Clone, Copy)]
pub struct FileExtent<'a> {
    /// Path in the volume.
    pub path: &'a str,
    /// First sector.
    pub sector: u32,
    /// Length.
    pub bytes: usize,
}

impl FileExtent<'_> {
    /// The first sector behind the file.
    pub fn end(&self) -> u32 {
        self.sector + self.bytes.div_ceil(SECTOR) as u32
    }
}

/// A directory. The root's path is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// Path in the volume.
    pub path: String,
    /// First sector.
    pub sector: u32,
    /// Length, in whole sectors.
    pub bytes: u32,
}

/// All directories, in the order of the path table: by depth, then by name.
#[derive(Debug)]
pub struct Layout<'a> {
    /// The directories, the root first.
    pub directories: Vec<Directory>,
    files: Vec<FileExtent<'a>>,
    end: u32,
}

/// What a directory holds.
struct Child {
    identifier: Vec<u8>,
    is_directory: bool,
    sector: u32,
    bytes: u32,
}

impl<'a> Layout<'a> {
    /// Places the directories above `paths`, from the sector `start` on. Files whose extent is not
    /// known yet count with their names.
    pub fn new(paths: impl Iterator<Item = &'a String>, extents: &[FileExtent<'a>], start: u32) -> Self {
        let files: Vec<_> = paths
            .map(|path| {
                let known = extents.iter().find(|extent| extent.path == path).copied();
                known.unwrap_or(FileExtent { path, sector: 0, bytes: 0 })
            })
            .collect();
        let mut folders = BTreeSet::from([(0, String::new())]);
        for file in &files {
            for (end, _) in file.path.match_indices('/') {
                let folder = &file.path[..end];
                folders.insert((folder.matches('/').count() + 1, folder.to_owned()));
            }
        }
        let directories = folders.into_iter().map(|(_, path)| Directory { path, sector: 0, bytes: 0 });
        let mut layout = Self { directories: directories.collect(), files, end: start };
        for index in 0..layout.directories.len() {
            let bytes = layout.records(&layout.directories[index]).len() as u32;
            let directory = &mut layout.directories[index];
            (directory.sector, directory.bytes) = (layout.end, bytes);
            layout.end += bytes / SECTOR as u32;
        }
        layout
    }

    /// The first sector behind the directories.
    pub fn end(&self) -> u32 {
        self.end
    }

    /// The root's record in the volume descriptor.
    pub fn root_record(&self) -> Vec<u8> {
        record(&[0], true, self.directories[0].sector, self.directories[0].bytes)
    }

    /// Content of a directory (ECMA-119, 6.8.1): no record crosses the end of a sector.
    pub fn records(&self, directory: &Directory) -> Vec<u8> {
        let parent = self.parent(directory);
        let mut bytes = record(&[0], true, directory.sector, directory.bytes);
        bytes.extend(record(&[1], true, parent.sector, parent.bytes));
        for child in self.children(directory) {
            let record = record(&child.identifier, child.is_directory, child.sector, child.bytes);
            if bytes.len() % SECTOR + record.len() > SECTOR {
                bytes.resize(bytes.len().next_multiple_of(SECTOR), 0);
            }
            bytes.extend(record);
        }
        bytes.resize(bytes.len().next_multiple_of(SECTOR), 0);
        bytes
    }

    /// The path table (ECMA-119, 9.4) with numbers in one byte order.
    pub fn path_table(&self, number: fn(u32) -> [u8; 4], short: fn(u16) -> [u8; 2]) -> Vec<u8> {
        let mut table = Vec::new();
        for directory in &self.directories {
            let name = directory.path.rsplit('/').next().unwrap_or_default();
            let identifier = if name.is_empty() { vec![0] } else { name.to_ascii_uppercase().into_bytes() };
            let parent = self.parent(directory);
            let parent = self.directories.iter().position(|other| other == parent).unwrap_or_default();
            table.extend([identifier.len() as u8, 0]);
            table.extend(number(directory.sector));
            table.extend(short(parent as u16 + 1));
            table.extend(&identifier);
            table.resize(table.len().next_multiple_of(2), 0);
        }
        table
    }

    fn parent(&self, directory: &Directory) -> &Directory {
        let path = directory.path.rsplit_once('/').map_or("", |(parent, _)| parent);
        self.directories.iter().find(|other| other.path == path).unwrap_or(&self.directories[0])
    }

    /// Files and folders directly in `directory`, by name.
    fn children(&self, directory: &Directory) -> Vec<Child> {
        let name_in = |path: &str| match path.rsplit_once('/') {
            Some((folder, name)) => (folder == directory.path).then(|| name.to_ascii_uppercase()),
            None => (directory.path.is_empty() && !path.is_empty()).then(|| path.to_ascii_uppercase()),
        };
        let folders = self.directories.iter().filter_map(|folder| {
            let identifier = name_in(&folder.path)?.into_bytes();
            Some(Child { identifier, is_directory: true, sector: folder.sector, bytes: folder.bytes })
        });
        let files = self.files.iter().filter_map(|file| {
            let identifier = format!("{};1", name_in(file.path)?).into_bytes();
            Some(Child { identifier, is_directory: false, sector: file.sector, bytes: file.bytes as u32 })
        });
        let mut children: Vec<_> = folders.chain(files).collect();
        children.sort_by(|one, other| one.identifier.cmp(&other.identifier));
        children
    }
}

/// A directory record (ECMA-119, 9.1) without time.
fn record(identifier: &[u8], is_directory: bool, sector: u32, bytes: u32) -> Vec<u8> {
    let length = (33 + identifier.len()).next_multiple_of(2);
    let mut record = vec![length as u8, 0];
    record.extend(both_u32(sector));
    record.extend(both_u32(bytes));
    record.extend([0; 7]);
    record.extend([if is_directory { 2 } else { 0 }, 0, 0]);
    record.extend(both_u16(1));
    record.push(identifier.len() as u8);
    record.extend(identifier);
    record.resize(length, 0);
    record
}
