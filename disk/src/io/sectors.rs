//! What has sectors: a disk that may be overwritten, a part of one, or memory in its stead.

use crate::error::Error;
use farrier_linux::blkid::Signature;
use farrier_linux::loop_device::LoopDevice;
use std::fmt::Debug;
use std::path::Path;

pub(super) mod sealed {
    /// Keeps code outside of [`io`](crate::io) from saying that something may be overwritten.
    pub trait Sealed {}
}

/// A disk that may be overwritten, as those see it who write to it: [`WritableDisk`](super::WritableDisk),
/// [`RemoteDisk`](super::RemoteDisk), a [`Section`](super::Section) of one, and in tests `MemoryDisk`. There is nothing
/// else.
///
/// Offsets and lengths are bytes, and multiples of the sector size. Buffers are the content of an
/// [`AlignedBuffer`](farrier_linux::aligned::AlignedBuffer) or a sector-aligned part of one.
pub trait Sectors: Debug + Sync + sealed::Sealed {
    /// Path of the device node, or the name of a disk that has none here.
    fn path(&self) -> &Path;

    /// Bytes.
    fn size(&self) -> u64;

    /// Bytes of a logical sector.
    fn sector_size(&self) -> u32;

    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error>;

    /// Writes all of `data` at `offset`.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    fn write_all_at(&self, data: &[u8], offset: u64) -> Result<(), Error>;

    /// Makes `length` bytes from `offset` read as zeros without sending zeros where the disk can do so.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    fn zero_out(&self, offset: u64, length: u64) -> Result<(), Error>;

    /// Makes `length` bytes from `offset` read as zeros without sending any; false when the disk has no
    /// command for that.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    fn zero_by_command(&self, offset: u64, length: u64) -> Result<bool, Error>;

    /// Whether the disk accepts discards.
    fn discards(&self) -> bool;

    /// Whether the disk says of itself that what was discarded reads as zeros, each time (F08).
    fn keeps_discarded_zero(&self) -> bool;

    /// Discards `length` bytes from `offset`, whatever they read as afterwards;
    /// false when the disk accepts no discards.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    fn discard(&self, offset: u64, length: u64) -> Result<bool, Error>;

    /// Returns when everything written is on stable storage.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    fn flush(&self) -> Result<(), Error>;

    /// Has the kernel forget the old partitions and find the new ones.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    fn reread_partitions(&self) -> Result<(), Error>;

    /// The signatures of file systems, arrays and volumes in `size` bytes from `start`, in their present
    /// state (D17).
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    fn signatures(&self, start: u64, size: u64) -> Result<Vec<Signature>, Error>;

    /// A block device over `length` bytes from `offset`, for a program that knows nothing of ranges. Nothing of
    /// the rest of the disk can be reached by it. There is none where this machine's kernel does not have the disk.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    fn loop_over(&self, offset: u64, length: u64) -> Result<Option<LoopDevice>, Error>;
}
