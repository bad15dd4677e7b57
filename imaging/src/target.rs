//! The part of a disk that an image fills.

use crate::error::Error;
use farrier_disk::io::zero::Zeroing;
use farrier_disk::io::{Section, Sectors};
use farrier_disk::wipe;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes at either end that carry what makes a disk or a file system valid.
pub(crate) const END: u64 = 1 << 20;

/// A whole disk, or a part of it such as a partition.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    section: Section<'a>,
    is_whole: bool,
}

impl<'a> Target<'a> {
    /// All of a disk.
    pub fn whole(disk: &'a dyn Sectors) -> Self {
        Self { section: Section::whole(disk), is_whole: true }
    }

    /// `size` bytes of a disk from `start`, both multiples of its sector size and cut at its end. No
    /// other byte of the disk is changed.
    pub fn part(disk: &'a dyn Sectors, start: u64, size: u64) -> Self {
        Self { section: Section::part(disk, start, size), is_whole: false }
    }

    /// Path of the disk.
    pub fn path(&self) -> &Path {
        self.section.path()
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.section.size()
    }

    /// Bytes of a sector.
    pub fn sector_size(&self) -> u32 {
        self.section.sector_size()
    }

    /// What is read and written.
    pub(crate) fn sectors(&self) -> &dyn Sectors {
        &self.section
    }

    /// Why an image of so many bytes is refused, which is larger.
    pub(crate) fn too_small(&self, url: &str, image_bytes: u64) -> Error {
        let disk = self.path().to_owned();
        Error::TooLarge { url: url.to_owned(), image_bytes, disk, disk_bytes: self.size() }
    }

    /// Whether it is a whole disk, and not a partition.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns how many bytes of zeros had to be transferred.
    ///
    /// Commands and looking at what is there only save time. A disk that advertises a command and refuses it,
    /// or cannot read what nobody wants any more, gets zeros to write.
    pub(crate) fn make_zero(&self, zeroing: &mut Zeroing, offset: u64, length: u64) -> Result<u64, Error> {
        zeroing.make(&self.section, offset, length).or_else(|error| {
            tracing::warn!(%error, "writing zeros instead");
            self.section.zero_out(offset, length)?;
            Ok(length)
        })
    }

    /// Makes both ends zero, so that neither an old nor a new table or file system is left.
    pub(crate) fn wipe_ends(&self) -> Result<(), Error> {
        if self.is_whole {
            return Ok(wipe::wipe_ends(&self.section)?);
        }
        let length = END.min(self.size());
        self.section.zero_out(0, length)?;
        self.section.zero_out(self.size() - length, length)?;
        Ok(self.section.flush()?)
    }

    /// As [`Target::wipe_ends`], before anything is written: of a whole disk what its old partitions were known by goes
    /// as well.
    fn clear(&self) -> Result<(), Error> {
        if self.is_whole { Ok(wipe::wipe_for_image(&self.section)?) } else { self.wipe_ends() }
    }

    /// Has the kernel forget the partitions that are no longer there.
    pub(crate) fn forget_partitions(&self) {
        if let (true, Err(error)) = (self.is_whole, self.section.reread_partitions()) {
            tracing::warn!(%error, "the kernel still lists the partitions of the old table");
        }
    }
}

impl<'a, S: Sectors> From<&'a S> for Target<'a> {
    fn from(disk: &'a S) -> Self {
        Self::whole(disk)
    }
}

/// Tells whether anything was changed yet.
#[derive(Debug, Default)]
pub(crate) struct Touched(AtomicBool);

impl Touched {
    /// Whatever table the target carries is gone before the first byte is written.
    pub(crate) fn begin(&self, target: &Target<'_>) -> Result<(), Error> {
        self.0.store(true, Ordering::Relaxed);
        target.clear()
    }

    pub(crate) fn is_touched(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
