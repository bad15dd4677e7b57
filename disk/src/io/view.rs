//! A range of a disk as a stream of bytes, for code that knows nothing of sectors.

use crate::error::Error;
use crate::io::WritableDisk;
use farrier_linux::aligned::AlignedBuffer;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Bytes moved at once; a multiple of every sector size.
const BLOCK: u64 = 64 * 1024;

/// Reads and writes a range of a disk through one aligned block. Call `flush` after writing.
#[derive(Debug)]
pub struct DiskView<'a> {
    disk: &'a WritableDisk,
    start: u64,
    length: u64,
    position: u64,
    block: AlignedBuffer,
    /// Offset on the disk of the block in memory.
    loaded: Option<u64>,
    dirty: bool,
}

impl<'a> DiskView<'a> {
    /// The whole disk.
    pub fn whole(disk: &'a WritableDisk) -> Self {
        Self::range(disk, 0, disk.size())
    }

    /// `length` bytes from `start`, cut at the end of the disk.
    pub fn range(disk: &'a WritableDisk, start: u64, length: u64) -> Self {
        let start = start.min(disk.size());
        let length = length.min(disk.size() - start);
        let block = AlignedBuffer::zeroed(BLOCK as usize);
        Self { disk, start, length, position: 0, block, loaded: None, dirty: false }
    }

    /// The part of the loaded block from the current position on, at most `wanted` bytes.
    fn window(&mut self, wanted: usize) -> io::Result<&mut [u8]> {
        let left = self.length.saturating_sub(self.position).min(wanted as u64);
        if left == 0 {
            return Ok(&mut []);
        }
        let offset = self.start + self.position;
        let base = offset - offset % BLOCK;
        if self.loaded != Some(base) {
            self.flush()?;
            self.loaded = None;
            let count = self.block_length(base);
            self.disk.read_exact_at(&mut self.block[..count], base).map_err(into_io)?;
            self.loaded = Some(base);
        }
        let within = (offset - base) as usize;
        let count = left.min(BLOCK - within as u64) as usize;
        Ok(&mut self.block[within..within + count])
    }

    /// Bytes of the block at `base`; the disk's last block may be short.
    fn block_length(&self, base: u64) -> usize {
        BLOCK.min(self.disk.size() - base) as usize
    }
}

impl Read for DiskView<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let window = self.window(buffer.len())?;
        let count = window.len();
        buffer[..count].copy_from_slice(window);
        self.position += count as u64;
        Ok(count)
    }
}

impl Write for DiskView<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let window = self.window(data.len())?;
        let count = window.len();
        window.copy_from_slice(&data[..count]);
        self.dirty |= count > 0;
        self.position += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        if let (true, Some(base)) = (self.dirty, self.loaded) {
            let count = self.block_length(base);
            self.disk.write_all_at(&self.block[..count], base).map_err(into_io)?;
        }
        self.dirty = false;
        Ok(())
    }
}

impl Seek for DiskView<'_> {
    fn seek(&mut self, target: SeekFrom) -> io::Result<u64> {
        let position = match target {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
            SeekFrom::End(offset) => self.length.checked_add_signed(offset),
        };
        self.position = position.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.position)
    }
}

fn into_io(error: Error) -> io::Error {
    match error {
        Error::Device { source, .. } => source,
        other => io::Error::other(other),
    }
}
