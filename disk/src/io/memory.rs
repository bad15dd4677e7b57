//! A disk in memory, for tests and fuzz targets: what writes to disks runs over it without root.

use super::sectors::{Sectors, sealed};
use crate::error::Error;
use farrier_linux::blkid::{self, Signature};
use farrier_linux::loop_device::LoopDevice;
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Bytes that are kept in one piece.
const BLOCK: usize = 64 << 10;
const ONES: &[u8] = &[0xff; BLOCK];
const ZEROS: &[u8] = &[0; BLOCK];

/// Blocks by their number, as far as somebody wrote to them; none is one of zeros.
type Blocks = BTreeMap<u64, Option<Box<[u8]>>>;

/// A disk in memory, of zeros or of ones. Only what is written to it takes memory.
///
/// It panics where a disk would refuse what no disk may be asked for, whatever the input was: offsets, lengths
/// and buffers that are not aligned to its sectors, and writing behind its end.
#[derive(Debug)]
pub struct MemoryDisk {
    path: PathBuf,
    size: u64,
    sector_size: u32,
    /// What was never written to.
    background: &'static [u8],
    blocks: Mutex<Blocks>,
    /// Offset of the sector that can be neither read nor written.
    broken: Option<u64>,
    /// How often something was asked of it.
    requests: AtomicU64,
}

impl MemoryDisk {
    /// A disk of `size` bytes of zeros, a multiple of `sector_size`.
    pub fn zeros(size: u64, sector_size: u32) -> Self {
        Self::new(size, sector_size, ZEROS)
    }

    /// A disk of ones: what reads as zeros was written.
    pub fn ones(size: u64, sector_size: u32) -> Self {
        Self::new(size, sector_size, ONES)
    }

    fn new(size: u64, sector_size: u32, background: &'static [u8]) -> Self {
        assert!(
            size.is_multiple_of(sector_size.into()),
            "{size} bytes are no whole sectors of {sector_size}"
        );
        let path = PathBuf::from("/dev/memory");
        Self {
            path,
            size,
            sector_size,
            background,
            blocks: Mutex::default(),
            broken: None,
            requests: AtomicU64::new(0),
        }
    }

    /// Has reading and writing the sector at `offset` fail.
    pub fn broken_at(self, offset: u64) -> Self {
        Self { broken: Some(offset), ..self }
    }

    /// How many requests it had so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Changes any bytes, cut at the end of the disk.
    pub fn put(&self, offset: u64, bytes: &[u8]) {
        let length = (bytes.len() as u64).min(self.size.saturating_sub(offset)) as usize;
        self.store(offset, &bytes[..length]);
    }

    /// `length` bytes from `offset`, any of them.
    pub fn content(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut content = vec![0; length];
        self.load(offset, &mut content);
        content
    }

    /// Whether the first `length` bytes are those of another disk.
    pub fn begins_like(&self, other: &Self, length: u64) -> bool {
        let (ours, theirs) = (self.blocks(), other.blocks());
        let mut numbers =
            ours.keys().chain(theirs.keys()).filter(|number| **number * (BLOCK as u64) < length);
        numbers.all(|number| {
            let count = BLOCK.min((length - number * BLOCK as u64) as usize);
            self.block(&ours, *number)[..count] == other.block(&theirs, *number)[..count]
        })
    }

    fn load(&self, mut offset: u64, mut bytes: &mut [u8]) {
        let blocks = self.blocks();
        while !bytes.is_empty() {
            let (within, count) = piece(offset, bytes.len() as u64);
            let (part, rest) = bytes.split_at_mut(count);
            part.copy_from_slice(&self.block(&blocks, offset / BLOCK as u64)[within..within + count]);
            (bytes, offset) = (rest, offset + count as u64);
        }
    }

    fn store(&self, mut offset: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (within, count) = piece(offset, bytes.len() as u64);
            let (part, rest) = bytes.split_at(count);
            self.change(offset, |block| block[within..within + count].copy_from_slice(part));
            (bytes, offset) = (rest, offset + count as u64);
        }
    }

    fn clear(&self, mut offset: u64, length: u64) {
        let end = offset + length;
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
            None => self.background.into(),
        };
        change(&mut content);
        blocks.insert(number, Some(content));
    }

    fn block<'a>(&self, blocks: &'a Blocks, number: u64) -> &'a [u8] {
        blocks.get(&number).map_or(self.background, |content| content.as_deref().unwrap_or(ZEROS))
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What every request to a disk has to be; an error when the broken sector is among what is asked for.
    fn require_sound(&self, action: &str, offset: u64, length: u64) -> Result<(), Error> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let is_aligned = |number: u64| number.is_multiple_of(self.sector_size.into());
        assert!(is_aligned(offset) && is_aligned(length), "{action} {length} bytes at {offset}");
        match self.broken {
            Some(broken) if (offset..offset + length).contains(&broken) => {
                Err(self.failed(action, offset, length, io::Error::from_raw_os_error(libc::EIO)))
            }
            _ => Ok(()),
        }
    }

    fn require_writable(&self, action: &str, offset: u64, length: u64) -> Result<(), Error> {
        assert!(offset + length <= self.size, "{action} {length} bytes at {offset} of {}", self.size);
        self.require_sound(action, offset, length)
    }

    fn require_aligned(&self, buffer: &[u8]) {
        let address = buffer.as_ptr() as usize;
        assert!(address.is_multiple_of(self.sector_size as usize), "a buffer at {address:#x}");
    }

    fn failed(&self, action: &str, offset: u64, length: u64, source: io::Error) -> Error {
        let action = format!("{action} {length} bytes at {offset}");
        Error::Device { device: self.path.clone(), action, source }
    }

    /// `size` bytes from `start` in their place in a file, which is what libblkid reads.
    fn as_file(&self, start: u64, size: u64) -> io::Result<File> {
        let file = File::from(memfd_create(c"disk", MFdFlags::MFD_CLOEXEC)?);
        file.set_len(self.size)?;
        let blocks = self.blocks();
        let end = self.size.min(start.saturating_add(size));
        let asked = start / BLOCK as u64..end.div_ceil(BLOCK as u64);
        let is_zero = |number: &u64| self.block(&blocks, *number) == ZEROS;
        // What is not written to a file reads as zeros.
        let known = blocks.range(asked.clone()).map(|(number, _)| *number);
        let numbers: Vec<_> = if self.background == ZEROS { known.collect() } else { asked.collect() };
        for number in numbers.into_iter().filter(|number| !is_zero(number)) {
            let (offset, content) = (number * BLOCK as u64, self.block(&blocks, number));
            let count = (self.size - offset).min(BLOCK as u64) as usize;
            file.write_all_at(&content[..count], offset)?;
        }
        Ok(file)
    }
}

/// Where in its block an offset lies, and how many of so many bytes are in that block.
fn piece(offset: u64, length: u64) -> (usize, usize) {
    let within = (offset % BLOCK as u64) as usize;
    (within, length.min((BLOCK - within) as u64) as usize)
}

impl sealed::Sealed for MemoryDisk {}

impl Sectors for MemoryDisk {
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
        let length = buffer.len() as u64;
        self.require_aligned(buffer);
        self.require_sound("reading", offset, length)?;
        if offset.checked_add(length).is_none_or(|end| end > self.size) {
            return Err(self.failed("reading", offset, length, io::ErrorKind::UnexpectedEof.into()));
        }
        self.load(offset, buffer);
        Ok(())
    }

    fn write_all_at(&self, data: &[u8], offset: u64) -> Result<(), Error> {
        self.require_aligned(data);
        self.require_writable("writing", offset, data.len() as u64)?;
        self.store(offset, data);
        Ok(())
    }

    fn zero_out(&self, offset: u64, length: u64) -> Result<(), Error> {
        self.require_writable("zeroing", offset, length)?;
        self.clear(offset, length);
        Ok(())
    }

    fn zero_by_command(&self, _: u64, _: u64) -> Result<bool, Error> {
        Ok(false)
    }

    fn discards(&self) -> bool {
        false
    }

    fn keeps_discarded_zero(&self) -> bool {
        false
    }

    fn discard(&self, _: u64, _: u64) -> Result<bool, Error> {
        Ok(false)
    }

    fn flush(&self) -> Result<(), Error> {
        Ok(())
    }

    fn reread_partitions(&self) -> Result<(), Error> {
        Ok(())
    }

    fn signatures(&self, start: u64, size: u64) -> Result<Vec<Signature>, Error> {
        let found = self.as_file(start, size).and_then(|file| blkid::signatures(&file, start, size));
        found.map_err(|source| self.failed("looking for signatures in", start, size, source))
    }

    fn loop_over(&self, _: u64, _: u64) -> Result<Option<LoopDevice>, Error> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_linux::aligned::AlignedBuffer;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn what_no_disk_may_be_asked_for_shows() {
        for sector in [512, 4096] {
            let disk = MemoryDisk::zeros(1 << 20, sector as u32);
            let data = AlignedBuffer::zeroed(2 * sector);
            let write = |data: &[u8], offset: usize| {
                let write = || disk.write_all_at(data, offset as u64).is_ok();
                catch_unwind(AssertUnwindSafe(write)).unwrap_or(false)
            };
            assert!(write(&data, sector));
            assert!(!write(&data[..sector], 256), "an offset");
            assert!(!write(&data[..256], 0), "a length");
            assert!(!write(&data[256..sector + 256], 0), "an address");
            assert!(!write(&data, (1 << 20) - sector), "the end");
        }
    }

    #[test]
    fn a_broken_sector_fails_whatever_touches_it() {
        let disk = MemoryDisk::ones(1 << 20, 512).broken_at(4096);
        let mut data = AlignedBuffer::zeroed(1024);
        for (offset, works) in [(3072, true), (3584, false), (4096, false), (4608, true)] {
            assert_eq!(disk.read_exact_at(&mut data, offset).is_ok(), works, "{offset}");
            assert_eq!(disk.zero_out(offset, 1024).is_ok(), works, "{offset}");
            assert_eq!(disk.write_all_at(&data, offset).is_ok(), works, "{offset}");
        }
    }

    #[test]
    fn libblkid_sees_what_was_written() {
        let mut page = [0; 4096];
        page[4086..].copy_from_slice(b"SWAPSPACE2");
        page[1024] = 1;
        page[1028] = 255;
        for disk in [MemoryDisk::zeros(4 << 20, 512), MemoryDisk::ones(4 << 20, 512)] {
            assert_eq!(disk.signatures(1 << 20, 1 << 20).unwrap(), []);
            disk.put(1 << 20, &page);
            assert_eq!(disk.signatures(1 << 20, 1 << 20).unwrap()[0].kind, "swap");
        }
    }
}
