//! Writes the kernel's archive format for initial ramdisks, "newc" cpio.
//!
//! The same entries always give the same bytes: entries are sorted, and owners, times and inode
//! numbers do not come from the build machine.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::error::BuildError;

const TRAILER: &str = "TRAILER!!!";
const S_IFDIR: u32 = 0o040_000;
const S_IFCHR: u32 = 0o020_000;
const S_IFREG: u32 = 0o100_000;
const S_IFLNK: u32 = 0o120_000;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    mode: u32,
    device: (u32, u32),
    data: Vec<u8>,
}

/// A file tree to be written as one archive. Paths are relative to the root, without leading `/`.
#[derive(Debug, Default)]
pub struct Archive {
    entries: BTreeMap<String, Entry>,
}

impl Archive {
    /// Adds a folder with the given permission bits, and the folders above it.
    pub fn directory(&mut self, path: &str, permissions: u32) {
        self.add(path, S_IFDIR | permissions, Vec::new());
    }

    /// Adds a regular file, and the folders above it.
    pub fn file(&mut self, path: &str, permissions: u32, data: Vec<u8>) {
        self.add(path, S_IFREG | permissions, data);
    }

    /// Adds a symbolic link, and the folders above it.
    pub fn symlink(&mut self, path: &str, target: &str) {
        self.add(path, S_IFLNK | 0o777, target.as_bytes().to_vec());
    }

    /// Adds a character device, and the folders above it.
    pub fn character_device(&mut self, path: &str, permissions: u32, major: u32, minor: u32) {
        self.parents(path);
        let entry = Entry { mode: S_IFCHR | permissions, device: (major, minor), data: Vec::new() };
        self.entries.insert(path.to_owned(), entry);
    }

    /// Whether there is an entry of this path.
    pub fn contains(&self, path: &str) -> bool {
        self.entries.contains_key(path)
    }

    fn add(&mut self, path: &str, mode: u32, data: Vec<u8>) {
        self.parents(path);
        self.entries.insert(path.to_owned(), Entry { mode, device: (0, 0), data });
    }

    fn parents(&mut self, path: &str) {
        for (end, _) in path.match_indices('/') {
            let folder = Entry { mode: S_IFDIR | 0o755, device: (0, 0), data: Vec::new() };
            self.entries.entry(path[..end].to_owned()).or_insert(folder);
        }
    }

    /// The archive's bytes.
    ///
    /// # Errors
    ///
    /// [`BuildError::TooLarge`] for an entry of 4 GiB or more.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BuildError> {
        let mut bytes = Vec::new();
        // Writing to memory fails for no other reason.
        self.write_to(&mut bytes).map_err(|error| BuildError::TooLarge { reason: error.to_string() })?;
        Ok(bytes)
    }

    fn write_to(&self, mut output: impl Write) -> io::Result<()> {
        for (inode, (path, entry)) in (1..).zip(&self.entries) {
            write_entry(&mut output, inode, path, entry)?;
        }
        write_entry(&mut output, 0, TRAILER, &Entry { mode: 0, device: (0, 0), data: Vec::new() })
    }
}

fn write_entry(output: &mut impl Write, inode: u32, path: &str, entry: &Entry) -> io::Result<()> {
    let too_large = |_| io::Error::new(io::ErrorKind::FileTooLarge, format!("{path} exceeds 4 GiB"));
    let size = u32::try_from(entry.data.len()).map_err(too_large)?;
    let name_size = u32::try_from(path.len() + 1).map_err(too_large)?;
    let (uid, gid, links, mtime, checksum) = (0, 0, 1, 0, 0);
    let (major, minor) = entry.device;
    let fields = [inode, entry.mode, uid, gid, links, mtime, size, 0, 0, major, minor, name_size, checksum];
    let mut header = String::from("070701");
    for field in fields {
        header.push_str(&format!("{field:08x}"));
    }
    header.push_str(path);
    header.push('\0');
    write_padded(output, header.as_bytes())?;
    write_padded(output, &entry.data)
}

/// Writes `bytes` and zeros up to the next multiple of four.
fn write_padded(output: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    output.write_all(bytes)?;
    output.write_all(&[0; 3][..bytes.len().next_multiple_of(4) - bytes.len()])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One entry as the kernel's unpacker would see it.
    #[derive(Debug, PartialEq, Eq)]
    pub(crate) struct Unpacked {
        pub(crate) path: String,
        pub(crate) mode: u32,
        pub(crate) device: (u32, u32),
        pub(crate) data: Vec<u8>,
    }

    /// Reads an archive by the format's description, without the writer's code.
    pub(crate) fn unpack(archive: &[u8]) -> Vec<Unpacked> {
        let field = |at: usize, number: usize| {
            let start = at + 6 + 8 * number;
            u32::from_str_radix(std::str::from_utf8(&archive[start..start + 8]).unwrap(), 16).unwrap()
        };
        let mut entries = Vec::new();
        let mut at = 0;
        loop {
            assert_eq!(at % 4, 0);
            assert_eq!(&archive[at..at + 6], b"070701");
            let (data_size, name_size) = (field(at, 6) as usize, field(at, 11) as usize);
            let name = &archive[at + 110..at + 110 + name_size];
            assert_eq!(name.last(), Some(&0));
            let path = std::str::from_utf8(&name[..name_size - 1]).unwrap().to_owned();
            let data_at = (at + 110 + name_size).div_ceil(4) * 4;
            if path == "TRAILER!!!" {
                assert_eq!(data_at, archive.len());
                return entries;
            }
            assert_eq!((field(at, 2), field(at, 3), field(at, 5)), (0, 0, 0), "owner and time of {path}");
            let data = archive[data_at..data_at + data_size].to_vec();
            let device = (field(at, 9), field(at, 10));
            entries.push(Unpacked { path, mode: field(at, 1), device, data });
            at = (data_at + data_size).div_ceil(4) * 4;
        }
    }

    fn written(archive: &Archive) -> Vec<u8> {
        archive.to_bytes().unwrap()
    }

    #[test]
    fn entries_are_read_back_with_their_parents_first() {
        let mut archive = Archive::default();
        archive.file("usr/bin/agent", 0o755, b"12345".to_vec());
        archive.symlink("init", "usr/bin/agent");
        archive.character_device("dev/console", 0o600, 5, 1);
        archive.directory("tmp", 0o1777);

        let expected = [
            ("dev", 0o040_755, (0, 0), &b""[..]),
            ("dev/console", 0o020_600, (5, 1), b""),
            ("init", 0o120_777, (0, 0), b"usr/bin/agent"),
            ("tmp", 0o041_777, (0, 0), b""),
            ("usr", 0o040_755, (0, 0), b""),
            ("usr/bin", 0o040_755, (0, 0), b""),
            ("usr/bin/agent", 0o100_755, (0, 0), b"12345"),
        ]
        .map(|(path, mode, device, data)| Unpacked {
            path: path.into(),
            mode,
            device,
            data: data.into(),
        });
        assert_eq!(unpack(&written(&archive)), expected);
    }

    #[test]
    fn order_of_adding_does_not_matter() {
        let (mut one, mut other) = (Archive::default(), Archive::default());
        one.file("a/b", 0o644, vec![1]);
        one.directory("c", 0o755);
        other.directory("c", 0o755);
        other.file("a/b", 0o644, vec![1]);
        assert_eq!(written(&one), written(&other));
    }
}
