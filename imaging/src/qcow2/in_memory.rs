//! Whole images in memory, for tests and fuzzing: what [`expand`] writes to is a disk that takes no more memory
//! than what is written to it.

use super::{Fault, Image, ReadAt};
use crate::buffers::Pool;
use crate::order::Order;
use crate::target::Space;
use crate::{CHUNK, Error};
use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard};
use std::thread;

/// How the tables are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Before the pass.
    Ranges,
    /// During the pass.
    Stream,
}

/// Disk and spool in memory, full of ones. Only what was written takes memory.
#[derive(Debug)]
pub struct Disk {
    size: u64,
    sector_size: u32,
    /// By their number; none is one of zeros.
    blocks: Mutex<BTreeMap<u64, Option<Box<[u8]>>>>,
}

/// Bytes that are kept in one piece.
const BLOCK: usize = 64 << 10;
/// Bytes of a sector where a caller has no choice.
const SECTOR_SIZE: u32 = 512;
const ONES: &[u8] = &[0xff; BLOCK];
const ZEROS: &[u8] = &[0; BLOCK];

impl Disk {
    fn new(size: u64, sector_size: u32) -> Self {
        Self { size, sector_size, blocks: Mutex::default() }
    }

    /// The first bytes.
    pub fn bytes(&self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.read(&mut bytes, 0);
        bytes
    }

    /// Whether the first bytes are those of another disk.
    pub fn begins_like(&self, other: &Self, length: u64) -> bool {
        let (ours, theirs) = (self.blocks(), other.blocks());
        let mut numbers =
            ours.keys().chain(theirs.keys()).filter(|number| **number * (BLOCK as u64) < length);
        numbers.all(|number| {
            let count = BLOCK.min((length - number * BLOCK as u64) as usize);
            block(&ours, *number)[..count] == block(&theirs, *number)[..count]
        })
    }

    fn read(&self, mut bytes: &mut [u8], mut offset: u64) {
        let blocks = self.blocks();
        while !bytes.is_empty() {
            let (within, count) = piece(offset, bytes.len() as u64);
            let (part, rest) = bytes.split_at_mut(count);
            part.copy_from_slice(&block(&blocks, offset / BLOCK as u64)[within..within + count]);
            (bytes, offset) = (rest, offset + count as u64);
        }
    }

    fn write(&self, mut bytes: &[u8], mut offset: u64) {
        assert!(offset + bytes.len() as u64 <= self.size, "writing {} bytes at {offset}", bytes.len());
        while !bytes.is_empty() {
            let (within, count) = piece(offset, bytes.len() as u64);
            let (part, rest) = bytes.split_at(count);
            self.change(offset, |block| block[within..within + count].copy_from_slice(part));
            (bytes, offset) = (rest, offset + count as u64);
        }
    }

    fn zero(&self, mut offset: u64, length: u64) {
        let end = offset + length;
        assert!(end <= self.size, "zeroing {length} bytes at {offset}");
        while offset < end {
            let (within, count) = piece(offset, end - offset);
            if count == BLOCK {
                self.blocks().insert(offset / BLOCK as u64, None);
            } else {
                self.change(offset, |block| block[within..within + count].fill(0));
            }
            offset += count as u64;
        }
    }

    fn change(&self, offset: u64, change: impl FnOnce(&mut [u8])) {
        let mut blocks = self.blocks();
        let number = offset / BLOCK as u64;
        let mut content: Box<[u8]> = match blocks.remove(&number) {
            Some(Some(content)) => content,
            Some(None) => ZEROS.into(),
            None => ONES.into(),
        };
        change(&mut content);
        blocks.insert(number, Some(content));
    }

    fn blocks(&self) -> MutexGuard<'_, BTreeMap<u64, Option<Box<[u8]>>>> {
        self.blocks.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn block(blocks: &BTreeMap<u64, Option<Box<[u8]>>>, number: u64) -> &[u8] {
    blocks.get(&number).map_or(ONES, |content| content.as_deref().unwrap_or(ZEROS))
}

/// Where in its block an offset lies, and how many of so many bytes are in that block.
fn piece(offset: u64, length: u64) -> (usize, usize) {
    let within = (offset % BLOCK as u64) as usize;
    (within, length.min((BLOCK - within) as u64) as usize)
}

impl Space for Disk {
    fn size(&self) -> u64 {
        self.size
    }

    fn sector_size(&self) -> u32 {
        self.sector_size
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        assert!(offset.is_multiple_of(self.sector_size.into()), "reading at {offset}");
        self.read(buffer, offset);
        Ok(())
    }

    fn write_all_at(&self, data: &[u8], offset: u64) -> Result<(), Error> {
        assert!(offset.is_multiple_of(self.sector_size.into()), "writing at {offset}");
        self.write(data, offset);
        Ok(())
    }
}

/// An image that was written.
#[derive(Debug)]
pub struct Expanded {
    /// What it was written to.
    pub disk: Disk,
    /// Bytes of the disk that the image describes.
    pub virtual_size: u64,
    /// Bytes that waited in the spool.
    pub bytes_spooled: u64,
}

impl ReadAt for &[u8] {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        buffer.copy_from_slice(&self[offset as usize..][..buffer.len()]);
        Ok(())
    }
}

/// Writes an image to a disk of `disk_size` bytes full of ones.
///
/// # Errors
///
/// Why the image is refused.
pub fn expand(file: &[u8], mode: Mode, disk_size: u64, memory: usize) -> Result<Expanded, String> {
    run(file, file, mode, disk_size, memory, SECTOR_SIZE).map_err(|fault| format!("{fault:?}"))
}

/// Judges an image by its tables alone, as is done before anything is written. Returns the bytes of the disk
/// that it describes.
///
/// # Errors
///
/// Why the image is refused.
pub fn judge(file: &[u8], disk_size: u64, memory: usize) -> Result<u64, String> {
    let image = open(file, disk_size, memory).map_err(|fault| format!("{fault:?}"))?;
    let size = image.virtual_size();
    let disk = Disk::new(disk_size, SECTOR_SIZE);
    let prepared = image.prepare(start(file), Some(&file), &disk, sync_channel(1).0);
    prepared.map(|_| size).map_err(|fault| format!("{fault:?}"))
}

fn start(file: &[u8]) -> &[u8] {
    &file[..file.len().min(CHUNK)]
}

fn open(file: &[u8], disk_size: u64, memory: usize) -> Result<Image, Fault> {
    let image = Image::open(start(file), memory)?;
    if image.virtual_size() > disk_size {
        return Err(Fault::NoRoom { bytes: disk_size });
    }
    Ok(image)
}

/// Like [`expand`], with another file for what is read before the pass, and sectors of this size.
pub(super) fn run(
    file: &[u8],
    tables: &[u8],
    mode: Mode,
    disk_size: u64,
    memory: usize,
    sector_size: u32,
) -> Result<Expanded, Fault> {
    let image = open(file, disk_size, memory)?;
    let virtual_size = image.virtual_size();
    let disk = Disk::new(disk_size, sector_size);
    let (orders, received) = sync_channel(2);
    let reader = (mode == Mode::Ranges).then_some(&tables as &dyn ReadAt);
    let bytes_spooled = thread::scope(|scope| {
        let feeding = scope.spawn(|| {
            let mut writing = image.prepare(start(file), reader, &disk, orders)?;
            let pool = Pool::new(2);
            for part in file.chunks(CHUNK) {
                let mut chunk = pool.take();
                chunk[..part.len()].copy_from_slice(part);
                chunk.length = part.len();
                writing.chunk(chunk)?;
            }
            writing.finish()
        });
        received.into_iter().for_each(|order| obey(order, &disk));
        feeding.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    Ok(Expanded { disk, virtual_size, bytes_spooled })
}

fn obey(order: Order, disk: &Disk) {
    let is_whole = |number: u64| number.is_multiple_of(disk.sector_size.into());
    match order {
        Order::Zeros { offset, length } => {
            assert!([offset, length].into_iter().all(is_whole), "{length} zeros at {offset}");
            disk.zero(offset, length);
        }
        Order::Data { chunk, parts } => {
            for part in parts {
                let numbers = [part.start as u64, part.length as u64, part.offset];
                assert!(numbers.into_iter().all(is_whole), "{part:?}");
                let data = &chunk[part.start..part.start + part.length];
                disk.write(data, part.offset);
            }
        }
    }
}
