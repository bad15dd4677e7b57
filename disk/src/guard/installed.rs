//! The file systems on the root disk, opened to change files in them.

use super::RootDisk;
use crate::device::stack;
use crate::device::usage;
use crate::error::Error;
use farrier_linux::mount::WritableMount;
use farrier_linux::{blkid, sysfs};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The file systems that deployed systems keep their files in.
const FILE_SYSTEMS: &[&str] = &["btrfs", "ext2", "ext3", "ext4", "vfat", "xfs"];

/// A partition of the root disk. Only such a one can be mounted to be changed.
#[derive(Debug, Clone)]
pub struct RootPartition {
    number: u32,
    path: PathBuf,
}

impl RootDisk {
    /// Its partitions, by number. A disk that is mounted or held is none whose files may be changed.
    ///
    /// # Errors
    ///
    /// [`Error::NoPartitionNodes`], [`Error::ChangedSinceChosen`], [`Error::InUse`] or [`Error::ReadOnly`].
    pub fn partitions(&self) -> Result<Vec<RootPartition>, Error> {
        self.require_partition_nodes()?;
        let device = self.choice.confirm()?;
        usage::require_unused(&device)?;
        let partition = |directory: PathBuf| {
            let number = sysfs::number(&directory, "partition")?;
            Some(RootPartition { number, path: sysfs::node(&directory) })
        };
        let mut partitions: Vec<_> =
            stack::partitions(device.directory()).into_iter().filter_map(partition).collect();
        partitions.sort_by_key(|partition| partition.number);
        Ok(partitions)
    }

    /// Makes sure that the kernel shows the partitions of such a disk as devices. On a multipath device it does
    /// not: a program would have to make these devices.
    ///
    /// # Errors
    ///
    /// [`Error::NoPartitionNodes`].
    pub fn require_partition_nodes(&self) -> Result<(), Error> {
        if stack::is_multipath(self.device().directory()) {
            return Err(Error::NoPartitionNodes { device: self.device().disk.name.clone().into() });
        }
        Ok(())
    }
}

impl RootPartition {
    /// Its number in the partition table.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Path of its device node.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Kind of the file system on it; nothing when it has none in which a system keeps files.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn file_system(&self) -> Result<Option<&'static str>, Error> {
        let look = || {
            let file = File::open(&self.path)?;
            let size = farrier_linux::block::size(&file)?;
            blkid::signatures(&file, 0, size)
        };
        let found = look().map_err(|source| self.failed("looking for its file system", source))?;
        let known = |kind: &str| FILE_SYSTEMS.iter().find(|known| **known == kind).copied();
        Ok(found.iter().find_map(|signature| known(&signature.kind)))
    }

    /// Mounts its file system of this kind on a new folder.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn mount(&self, kind: &str, folder: &Path) -> Result<WritableMount, Error> {
        WritableMount::new(&self.path, kind, folder)
            .map_err(|source| self.failed(&format!("mounting its file system {kind}"), source))
    }

    fn failed(&self, action: &str, source: io::Error) -> Error {
        Error::Device { device: self.path.clone(), action: action.to_owned(), source }
    }
}
