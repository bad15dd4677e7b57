//! Whole images in memory, for tests and fuzzing: what [`expand`] returns is what a disk would hold.

use super::{Fault, Image, ReadAt};
use crate::buffers::Pool;
use crate::order::Order;
use crate::target::Space;
use crate::{CHUNK, Error};
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

/// Disk and spool in memory.
struct Memory {
    bytes: Mutex<Vec<u8>>,
    sector_size: u32,
}

impl Memory {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Space for Memory {
    fn size(&self) -> u64 {
        self.bytes().len() as u64
    }

    fn sector_size(&self) -> u32 {
        self.sector_size
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        assert!(offset.is_multiple_of(self.sector_size.into()), "reading at {offset}");
        buffer.copy_from_slice(&self.bytes()[offset as usize..][..buffer.len()]);
        Ok(())
    }

    fn write_all_at(&self, data: &[u8], offset: u64) -> Result<(), Error> {
        assert!(offset.is_multiple_of(self.sector_size.into()), "writing at {offset}");
        self.bytes()[offset as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }
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

/// Writes an image to a disk of `disk_size` bytes full of ones, and returns the disk.
///
/// # Errors
///
/// Why the image is refused.
pub fn expand(file: &[u8], mode: Mode, disk_size: usize, memory: usize) -> Result<Vec<u8>, String> {
    run(file, file, mode, disk_size, memory, 512).map_err(|fault| format!("{fault:?}"))
}

/// Like [`expand`], with another file for what is read before the pass, and sectors of this size.
pub(super) fn run(
    file: &[u8],
    tables: &[u8],
    mode: Mode,
    disk_size: usize,
    memory: usize,
    sector_size: u32,
) -> Result<Vec<u8>, Fault> {
    let start = &file[..file.len().min(CHUNK)];
    let image = Image::open(start, memory)?;
    if image.virtual_size() > disk_size as u64 {
        return Err(Fault::NoRoom { bytes: disk_size as u64 });
    }
    let space = Memory { bytes: Mutex::new(vec![0xff; disk_size]), sector_size };
    let (orders, received) = sync_channel(2);
    let reader = (mode == Mode::Ranges).then_some(&tables as &dyn ReadAt);
    thread::scope(|scope| {
        let feeding = scope.spawn(|| {
            let mut writing = image.prepare(start, reader, &space, orders)?;
            let pool = Pool::new(2);
            for part in file.chunks(CHUNK) {
                let mut chunk = pool.take();
                chunk[..part.len()].copy_from_slice(part);
                chunk.length = part.len();
                writing.chunk(chunk)?;
            }
            writing.finish()
        });
        received.into_iter().for_each(|order| obey(order, &space));
        feeding.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    Ok(std::mem::take(&mut *space.bytes()))
}

fn obey(order: Order, space: &Memory) {
    let mut disk = space.bytes();
    match order {
        Order::Zeros { offset, length } => {
            let sector = u64::from(space.sector_size);
            assert!(offset.is_multiple_of(sector) && length.is_multiple_of(sector), "{length} at {offset}");
            disk[offset as usize..][..length as usize].fill(0);
        }
        Order::Data { chunk, parts } => {
            for part in parts {
                let sector = space.sector_size as usize;
                let is_whole = |number: usize| number.is_multiple_of(sector);
                assert!(
                    [part.start, part.length, part.offset as usize].into_iter().all(is_whole),
                    "{part:?}"
                );
                let data = &chunk[part.start..part.start + part.length];
                disk[part.offset as usize..][..part.length].copy_from_slice(data);
            }
        }
    }
}
