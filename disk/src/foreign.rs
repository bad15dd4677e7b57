//! An ISO 9660 image that somebody else made, read and never changed.
//!
//! Readers of file systems follow chains and folders as the volume has them, and one that leads back to itself
//! is followed for ever. So what is read has a budget, whatever reads it.

use std::cell::Cell;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes of folders and tables that are read; 20 000 files with the longest names have fewer.
const STRUCTURE: u64 = 16 << 20;

/// What may still be read of a volume, in bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    left: Cell<u64>,
    /// What of it is for the contents of files and was not given to one yet.
    contents: Cell<u64>,
}

impl Budget {
    /// For a volume whose files are `contents` bytes together at most.
    pub fn of(contents: u64) -> Self {
        Self { left: Cell::new(STRUCTURE), contents: Cell::new(contents) }
    }

    /// Lets a file of this many bytes be read.
    ///
    /// # Errors
    ///
    /// The files are larger together than they can be: some lie in the same place.
    pub fn grant(&self, bytes: u64) -> io::Result<()> {
        let rest = self.contents.get().checked_sub(bytes);
        let rest = rest.ok_or_else(larger_together)?;
        self.contents.set(rest);
        self.left.set(self.left.get().saturating_add(bytes));
        Ok(())
    }

    fn spend(&self, bytes: u64) -> io::Result<()> {
        let rest = self.left.get().checked_sub(bytes);
        self.left.set(rest.ok_or_else(|| io::Error::other("a folder or table in it has no end"))?);
        Ok(())
    }
}

/// The volume, as something that a crate reads.
#[derive(Debug)]
pub(crate) struct Foreign<'a, T> {
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

/// What is said of a volume whose files lie in each other's places.
pub(crate) fn larger_together() -> io::Error {
    io::Error::other("its files are larger together than it can hold")
}
