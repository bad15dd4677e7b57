//! Whole images in memory, for tests and fuzzing: what [`expand`] writes to is a disk full of ones that takes no
//! more memory than what is written to it.

use super::{Fault, Image, ReadAt};
use crate::buffers::Pool;
use crate::order::Order;
use crate::{CHUNK, Error};
use farrier_disk::Sectors;
use farrier_disk::io::MemoryDisk;
use std::sync::mpsc::sync_channel;
use std::thread;

/// How the tables are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Before the pass.
    Ranges,
    /// During the pass.
    Stream,
}

/// Bytes of a sector where a caller has no choice.
const SECTOR_SIZE: u32 = 512;

/// An image that was written.
#[derive(Debug)]
pub struct Expanded {
    /// What it was written to.
    pub disk: MemoryDisk,
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
    let disk = MemoryDisk::ones(disk_size, SECTOR_SIZE);
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
    let disk = MemoryDisk::ones(disk_size, sector_size);
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

fn obey(order: Order, disk: &MemoryDisk) {
    let done = match order {
        Order::Zeros { offset, length } => disk.zero_out(offset, length),
        Order::Data { chunk, parts } => parts.iter().try_for_each(|part| {
            disk.write_all_at(&chunk[part.start..part.start + part.length], part.offset)
        }),
    };
    done.expect("memory is sound");
}
