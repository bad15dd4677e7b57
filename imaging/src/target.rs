//! The part of a disk that an image fills.

use crate::error::Error;
use farrier_disk::io::zero::Zeroing;
use farrier_disk::{WritableDisk, wipe};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes at either end that carry what makes a disk or a file system valid.
pub(crate) const END: u64 = 1 << 20;

/// A whole disk, or a part of it such as a partition.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    disk: &'a WritableDisk,
    start: u64,
    size: u64,
    is_whole: bool,
}

impl<'a> Target<'a> {
    /// All of a disk.
    pub fn whole(disk: &'a WritableDisk) -> Self {
        Self { disk, start: 0, size: disk.size(), is_whole: true }
    }

    /// `size` bytes of a disk from `start`, both multiples of its sector size and cut at its end. No
    /// other byte of the disk is changed.
    pub fn part(disk: &'a WritableDisk, start: u64, size: u64) -> Self {
        let start = start.min(disk.size());
        Self { disk, start, size: size.min(disk.size() - start), is_whole: false }
    }

    /// Path of the disk.
    pub fn path(&self) -> &Path {
        self.disk.path()
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Why an image of so many bytes is refused, which is larger.
    pub(crate) fn too_small(&self, url: &str, image_bytes: u64) -> Error {
        let disk = self.path().to_owned();
        Error::TooLarge { url: url.to_owned(), image_bytes, disk, disk_bytes: self.size }
    }

    /// Whether it is a whole disk, and not a partition.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Bytes of a sector.
    pub fn sector_size(&self) -> u32 {
        self.disk.sector_size()
    }

    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        Ok(self.disk.read_exact_at(buffer, self.start + offset)?)
    }

    pub(crate) fn write_all_at(&self, data: &[u8], offset: u64) -> Result<(), Error> {
        Ok(self.disk.write_all_at(data, self.start + offset)?)
    }

    fn zero_out(&self, offset: u64, length: u64) -> Result<(), Error> {
        Ok(self.disk.zero_out(self.start + offset, length)?)
    }

    /// Returns how many bytes of zeros had to be transferred.
    ///
    /// Commands and looking at what is there only save time. A disk that advertises a command and refuses it,
    /// or cannot read what nobody wants any more, gets zeros to write.
    pub(crate) fn make_zero(&self, zeroing: &mut Zeroing, offset: u64, length: u64) -> Result<u64, Error> {
        zeroing.make(self.disk, self.start + offset, length).or_else(|error| {
            tracing::warn!(%error, "writing zeros instead");
            self.zero_out(offset, length)?;
            Ok(length)
        })
    }

    pub(crate) fn flush(&self) -> Result<(), Error> {
        Ok(self.disk.flush()?)
    }

    /// Makes both ends zero, so that neither an old nor a new table or file system is left.
    pub(crate) fn wipe_ends(&self) -> Result<(), Error> {
        if self.is_whole {
            return Ok(wipe::wipe_ends(self.disk)?);
        }
        let length = END.min(self.size);
        self.zero_out(0, length)?;
        self.zero_out(self.size - length, length)?;
        self.flush()
    }

    /// Has the kernel forget the partitions that are no longer there.
    pub(crate) fn forget_partitions(&self) {
        if let (true, Err(error)) = (self.is_whole, self.disk.reread_partitions()) {
            tracing::warn!(%error, "the kernel still lists the partitions of the old table");
        }
    }
}

impl<'a> From<&'a WritableDisk> for Target<'a> {
    fn from(disk: &'a WritableDisk) -> Self {
        Self::whole(disk)
    }
}

/// Where bytes can be put: a target, or memory in its stead.
pub(crate) trait Space: Sync {
    fn size(&self) -> u64;
    fn sector_size(&self) -> u32;
    /// Fills the buffer from `offset`; both are aligned as direct I/O demands, as in the next one.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error>;
    fn write_all_at(&self, data: &[u8], offset: u64) -> Result<(), Error>;
}

impl Space for Target<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn sector_size(&self) -> u32 {
        self.disk.sector_size()
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        Target::read_exact_at(self, buffer, offset)
    }

    fn write_all_at(&self, data: &[u8], offset: u64) -> Result<(), Error> {
        Target::write_all_at(self, data, offset)
    }
}

/// Tells whether anything was changed yet.
#[derive(Debug, Default)]
pub(crate) struct Touched(AtomicBool);

impl Touched {
    /// Whatever table the target carries is gone before the first byte is written.
    pub(crate) fn begin(&self, target: &Target<'_>) -> Result<(), Error> {
        self.0.store(true, Ordering::Relaxed);
        target.wipe_ends()
    }

    pub(crate) fn is_touched(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
