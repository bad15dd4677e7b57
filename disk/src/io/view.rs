//! A range of a disk as a stream of bytes, for code that knows nothing of sectors.

use crate::error::Error;
use crate::io::Sectors;
use farrier_linux::aligned::AlignedBuffer;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Bytes moved at once; a multiple of every sector size.
const BLOCK: u64 = 64 * 1024;

/// Blocks of a file system that is filled: its tables, folders and files lie apart, and are written in turns.
const MANY: usize = 16;

/// Reads and writes a range of a disk through aligned blocks, by itself one. Call `flush` after writing.
#[derive(Debug)]
pub struct DiskView<'a> {
    disk: &'a dyn Sectors,
    start: u64,
    length: u64,
    position: u64,
    /// Those in memory; the one that was used last is the last.
    blocks: Vec<Block>,
    /// How many are kept.
    room: usize,
}

/// A part of a disk in memory.
#[derive(Debug)]
struct Block {
    /// Offset on the disk.
    base: u64,
    bytes: AlignedBuffer,
    is_dirty: bool,
}

impl<'a> DiskView<'a> {
    /// The whole disk.
    pub fn whole(disk: &'a dyn Sectors) -> Self {
        Self::range(disk, 0, disk.size())
    }

    /// `length` bytes from `start`, cut at the end of the disk.
    pub fn range(disk: &'a dyn Sectors, start: u64, length: u64) -> Self {
        let start = start.min(disk.size());
        let length = length.min(disk.size() - start);
        Self { disk, start, length, position: 0, blocks: Vec::new(), room: 1 }
    }

    /// Keeps a MiB in memory, and writes it in an order of its own: for a file system that counts as written once it
    /// is flushed.
    #[must_use]
    pub fn with_memory(self) -> Self {
        Self { room: MANY, ..self }
    }

    /// The part of the loaded block from the current position on, at most `wanted` bytes.
    fn window(&mut self, wanted: usize) -> io::Result<&mut [u8]> {
        let left = self.length.saturating_sub(self.position).min(wanted as u64);
        if left == 0 {
            return Ok(&mut []);
        }
        let offset = self.start + self.position;
        let base = offset - offset % BLOCK;
        let within = (offset - base) as usize;
        let count = left.min(BLOCK - within as u64) as usize;
        Ok(&mut self.load(base)?.bytes[within..within + count])
    }

    /// The block at `base`, which becomes the last one, in place of the one that was not used for longest.
    fn load(&mut self, base: u64) -> io::Result<&mut Block> {
        let known = self.blocks.iter().position(|block| block.base == base);
        let block = match known {
            Some(number) => self.blocks.remove(number),
            None => {
                let mut bytes = if self.blocks.len() < self.room {
                    AlignedBuffer::zeroed(BLOCK as usize)
                } else {
                    self.put(0)?;
                    self.blocks.remove(0).bytes
                };
                let count = self.block_length(base);
                self.disk.read_exact_at(&mut bytes[..count], base).map_err(into_io)?;
                Block { base, bytes, is_dirty: false }
            }
        };
        self.blocks.push(block);
        let last = self.blocks.len() - 1;
        Ok(&mut self.blocks[last])
    }

    /// Has the disk know what is new in a block.
    fn put(&mut self, number: usize) -> io::Result<()> {
        let count = self.block_length(self.blocks[number].base);
        let block = &mut self.blocks[number];
        if block.is_dirty {
            self.disk.write_all_at(&block.bytes[..count], block.base).map_err(into_io)?;
            block.is_dirty = false;
        }
        Ok(())
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
        if let Some(block) = self.blocks.last_mut().filter(|_| count > 0) {
            block.is_dirty = true;
        }
        self.position += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.blocks.sort_by_key(|block| block.base);
        (0..self.blocks.len()).try_for_each(|number| self.put(number))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::memory::MemoryDisk;

    /// Fills two places in turns, as files and the table that leads to them are.
    fn fill(view: &mut DiskView<'_>) {
        for number in 0..200_u64 {
            for place in [4096, 3 << 20] {
                view.seek(SeekFrom::Start(place + number * 7)).unwrap();
                view.write_all(&number.to_le_bytes()).unwrap();
            }
        }
        view.flush().unwrap();
    }

    #[test]
    fn what_is_written_in_turns_costs_few_requests_and_is_the_same() {
        let (plain, remembered) = (MemoryDisk::ones(8 << 20, 512), MemoryDisk::ones(8 << 20, 512));
        fill(&mut DiskView::whole(&plain));
        fill(&mut DiskView::whole(&remembered).with_memory());
        assert!(plain.begins_like(&remembered, 8 << 20));
        assert_eq!((plain.requests(), remembered.requests()), (800, 4));
    }

    #[test]
    fn more_than_is_kept_is_written_and_read_again() {
        let disk = MemoryDisk::zeros(8 << 20, 4096);
        let mut view = DiskView::range(&disk, 4096, 7 << 20).with_memory();
        let content: Vec<_> = (0..7 << 20).map(|number: u32| (number % 251) as u8).collect();
        view.write_all(&content).unwrap();
        view.seek(SeekFrom::Start(5)).unwrap();
        view.write_all(&[9]).unwrap();
        let mut first = [0; 8];
        view.rewind().unwrap();
        view.read_exact(&mut first).unwrap();
        assert_eq!(first, [0, 1, 2, 3, 4, 9, 6, 7]);
        view.flush().unwrap();
        assert_eq!(disk.content(4096, 8), first);
        assert!(disk.content(4096 + 8, content.len() - 8) == content[8..]);
        assert_eq!((disk.content(0, 4096), disk.content(4096 + (7 << 20), 16)), (vec![0; 4096], vec![0; 16]));
    }

    #[test]
    fn a_block_that_cannot_be_written_is_an_error() {
        let disk = MemoryDisk::zeros(1 << 20, 512).broken_at(64 << 10);
        let mut view = DiskView::whole(&disk).with_memory();
        view.write_all(&[1; 512]).unwrap();
        view.seek(SeekFrom::Start(64 << 10)).unwrap();
        assert!(view.write_all(&[1; 512]).is_err());
        view.rewind().unwrap();
        let mut first = [0; 2];
        view.read_exact(&mut first).unwrap();
        assert_eq!(first, [1, 1]);
    }
}
