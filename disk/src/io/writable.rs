//! An exclusively opened disk whose content may be destroyed.

use super::sectors::{Sectors, sealed};
use crate::device::BlockDevice;
use crate::device::command_set::CommandSet;
use crate::device::usage::require_unused;
use crate::error::Error;
use farrier_linux::blkid::{self, Signature};
use farrier_linux::block::zones::{self, Zone};
use farrier_linux::loop_device::LoopDevice;
use farrier_linux::{block, sysfs};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// How often, and how far apart, a busy disk is tried: ten seconds in all.
const OPEN_ATTEMPTS: u32 = 40;
const OPEN_INTERVAL: Duration = Duration::from_millis(250);

/// What the kernel calls disks with zones that take writes at their write pointers alone.
const WRITTEN_IN_ORDER: &str = "host-managed";

/// A disk that may be overwritten, held exclusively and accessed past the page cache.
///
/// In the agent none but [`guard`](crate::guard) makes one; in the conductor none but
/// [`SessionDisk::open`](crate::iscsi_session::SessionDisk::open).
#[derive(Debug)]
pub struct WritableDisk {
    file: File,
    path: PathBuf,
    size: u64,
    sector_size: u32,
    discards: bool,
    commands: Option<CommandSet>,
    is_zoned: bool,
}

impl WritableDisk {
    pub(crate) fn open(device: &BlockDevice) -> Result<Self, Error> {
        require_unused(device)?;
        let path = PathBuf::from(&device.disk.name);
        let failed =
            |action: &str, source| Error::Device { device: path.clone(), action: action.to_owned(), source };
        let file = open_exclusively(&path).map_err(|source| match source.raw_os_error() {
            Some(libc::EBUSY) => {
                Error::InUse { device: device.disk.name.clone(), user: "the kernel says busy".to_owned() }
            }
            Some(libc::EROFS | libc::EACCES) => Error::ReadOnly { device: device.disk.name.clone() },
            _ => failed("opening it for writing", source),
        })?;
        require_same_device(&file, device).map_err(|source| failed("comparing its device number", source))?;
        let size = block::size(&file).map_err(|source| failed("reading its size", source))?;
        let sector_size =
            block::logical_sector_size(&file).map_err(|source| failed("reading its sector size", source))?;
        let most = sysfs::number::<u64>(&device.directory().join("queue"), "discard_max_bytes");
        let discards = most.is_some_and(|bytes| bytes > 0);
        let zoned = sysfs::attribute(&device.directory().join("queue"), "zoned");
        let is_zoned = zoned.as_deref() == Some(WRITTEN_IN_ORDER);
        Ok(Self { file, path, size, sector_size, discards, commands: CommandSet::of(device), is_zoned })
    }

    /// The zones of a disk that must be written in order; none for any other disk.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn zones(&self) -> Result<Vec<Zone>, Error> {
        if !self.is_zoned {
            return Ok(Vec::new());
        }
        zones::zones(&self.file).map_err(|source| self.failed("reading its zones".to_owned(), source))
    }

    /// Moves the write pointers of all zones in a range to their starts.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn reset_zones(&self, offset: u64, length: u64) -> Result<(), Error> {
        zones::reset(&self.file, offset, length).map_err(|source| {
            self.failed(format!("resetting the zones in {length} bytes at {offset}"), source)
        })
    }

    /// Moves the write pointers of all zones in a range to their ends.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn finish_zones(&self, offset: u64, length: u64) -> Result<(), Error> {
        zones::finish(&self.file, offset, length).map_err(|source| {
            self.failed(format!("finishing the zones in {length} bytes at {offset}"), source)
        })
    }

    /// Lets go of the disk for a program that claims it itself. Open it again for what comes after that.
    pub fn hand_over(self) -> HandedOverDisk {
        HandedOverDisk { path: self.path, size: self.size }
    }

    fn failed(&self, action: String, source: io::Error) -> Error {
        Error::Device { device: self.path.clone(), action, source }
    }
}

impl sealed::Sealed for WritableDisk {}

impl Sectors for WritableDisk {
    fn path(&self) -> &Path {
        &self.path
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn sector_size(&self) -> u32 {
        self.sector_size
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        self.file
            .read_exact_at(buffer, offset)
            .map_err(|source| self.failed(format!("reading {} bytes at {offset}", buffer.len()), source))
    }

    fn write_all_at(&self, data: &[u8], offset: u64) -> Result<(), Error> {
        self.file
            .write_all_at(data, offset)
            .map_err(|source| self.failed(format!("writing {} bytes at {offset}", data.len()), source))
    }

    fn zero_out(&self, offset: u64, length: u64) -> Result<(), Error> {
        block::zero_out(&self.file, offset, length)
            .map_err(|source| self.failed(format!("zeroing {length} bytes at {offset}"), source))
    }

    fn zero_by_command(&self, offset: u64, length: u64) -> Result<bool, Error> {
        block::zero_by_command(&self.file, offset, length)
            .map_err(|source| self.failed(format!("unmapping {length} bytes at {offset}"), source))
    }

    fn discards(&self) -> bool {
        self.discards
    }

    fn keeps_discarded_zero(&self) -> bool {
        self.commands.is_some_and(|commands| commands.keeps_discarded_zero(&self.path, self))
    }

    fn discard(&self, offset: u64, length: u64) -> Result<bool, Error> {
        block::discard(&self.file, offset, length)
            .map_err(|source| self.failed(format!("discarding {length} bytes at {offset}"), source))
    }

    fn flush(&self) -> Result<(), Error> {
        block::flush_buffers(&self.file).map_err(|source| self.failed("flushing".to_owned(), source))
    }

    fn reread_partitions(&self) -> Result<(), Error> {
        block::reread_partitions(&self.file)
            .map_err(|source| self.failed("re-reading its partition table".to_owned(), source))
    }

    /// Not through the disk's own descriptor: libblkid reads what direct access would refuse.
    fn signatures(&self, start: u64, size: u64) -> Result<Vec<Signature>, Error> {
        let found = File::open(&self.path).and_then(|file| blkid::signatures(&file, start, size));
        found.map_err(|source| {
            self.failed(format!("looking for signatures in {size} bytes at {start}"), source)
        })
    }

    fn loop_over(&self, offset: u64, length: u64) -> Result<Option<LoopDevice>, Error> {
        LoopDevice::over(&self.file, offset, length, self.sector_size)
            .map(Some)
            .map_err(|source| self.failed(format!("making a device of {length} bytes at {offset}"), source))
    }
}

/// A disk that was opened as one that may be overwritten, and was let go of for a program that opens it
/// itself.
#[derive(Debug)]
pub struct HandedOverDisk {
    path: PathBuf,
    size: u64,
}

impl HandedOverDisk {
    /// Path of the device node.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// For the device's own commands.
impl AsFd for WritableDisk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn open_exclusively(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // O_EXCL without O_CREAT claims a block device against mounts, swap and other claims.
    options.read(true).write(true).custom_flags(libc::O_EXCL | libc::O_DIRECT | libc::O_CLOEXEC);
    for _ in 1..OPEN_ATTEMPTS {
        match options.open(path) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => thread::sleep(OPEN_INTERVAL),
            outcome => return outcome,
        }
    }
    options.open(path)
}

/// Guards against a device node that leads to another disk than the one described.
fn require_same_device(file: &File, device: &BlockDevice) -> io::Result<()> {
    let opened = file.metadata()?.rdev();
    let opened = format!("{}:{}", libc::major(opened), libc::minor(opened));
    let directories = device.directories();
    let described = directories.first().and_then(|directory| sysfs::attribute(directory, "dev"));
    if described.as_deref() == Some(opened.as_str()) {
        return Ok(());
    }
    let described = described.unwrap_or_else(|| "without a number".to_owned());
    Err(io::Error::other(format!("the device node is {opened}, the described disk is {described}")))
}
