//! A part of a disk that is written to as if it were one.

use super::sectors::{Sectors, sealed};
use crate::error::Error;
use farrier_linux::blkid::Signature;
use farrier_linux::loop_device::LoopDevice;
use std::io;
use std::path::Path;

/// A disk, or a part of it such as a partition. No other byte of the disk can be reached by it.
#[derive(Debug, Clone, Copy)]
pub struct Section<'a> {
    disk: &'a dyn Sectors,
    start: u64,
    size: u64,
}

impl<'a> Section<'a> {
    /// All of a disk.
    pub fn whole(disk: &'a dyn Sectors) -> Self {
        Self { disk, start: 0, size: disk.size() }
    }

    /// `size` bytes from `start`, both multiples of the sector size and cut at the end of the disk.
    pub fn part(disk: &'a dyn Sectors, start: u64, size: u64) -> Self {
        let start = start.min(disk.size());
        Self { disk, start, size: size.min(disk.size() - start) }
    }

    /// Where `length` bytes from `offset` begin on the disk.
    fn place(&self, offset: u64, length: u64) -> Result<u64, Error> {
        match offset.checked_add(length) {
            Some(end) if end <= self.size => Ok(self.start + offset),
            _ => Err(Error::Device {
                device: self.path().to_owned(),
                action: format!("reaching {length} bytes at {offset} of a part of {} bytes", self.size),
                source: io::ErrorKind::InvalidInput.into(),
            }),
        }
    }
}

impl sealed::Sealed for Section<'_> {}

impl Sectors for Section<'_> {
    fn path(&self) -> &Path {
        self.disk.path()
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn sector_size(&self) -> u32 {
        self.disk.sector_size()
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        self.disk.read_exact_at(buffer, self.place(offset, buffer.len() as u64)?)
    }

    fn write_all_at(&self, data: &[u8], offset: u64) -> Result<(), Error> {
        self.disk.write_all_at(data, self.place(offset, data.len() as u64)?)
    }

    fn zero_out(&self, offset: u64, length: u64) -> Result<(), Error> {
        self.disk.zero_out(self.place(offset, length)?, length)
    }

    fn zero_by_command(&self, offset: u64, length: u64) -> Result<bool, Error> {
        self.disk.zero_by_command(self.place(offset, length)?, length)
    }

    fn discards(&self) -> bool {
        self.disk.discards()
    }

    fn keeps_discarded_zero(&self) -> bool {
        self.disk.keeps_discarded_zero()
    }

    fn discard(&self, offset: u64, length: u64) -> Result<bool, Error> {
        self.disk.discard(self.place(offset, length)?, length)
    }

    fn flush(&self) -> Result<(), Error> {
        self.disk.flush()
    }

    /// Nothing of the disk's table is in a part of it.
    fn reread_partitions(&self) -> Result<(), Error> {
        if self.start == 0 && self.size == self.disk.size() { self.disk.reread_partitions() } else { Ok(()) }
    }

    fn signatures(&self, start: u64, size: u64) -> Result<Vec<Signature>, Error> {
        self.disk.signatures(self.place(start, size)?, size)
    }

    fn loop_over(&self, offset: u64, length: u64) -> Result<Option<LoopDevice>, Error> {
        self.disk.loop_over(self.place(offset, length)?, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::MemoryDisk;
    use farrier_linux::aligned::AlignedBuffer;

    #[test]
    fn nothing_outside_of_a_part_is_reached_by_it() {
        let disk = MemoryDisk::ones(64 << 10, 512);
        let part = Section::part(&disk, 4096, 8192);
        let data = AlignedBuffer::zeroed(8192);
        part.write_all_at(&data, 0).unwrap();
        part.zero_out(8192 - 512, 512).unwrap();
        for (offset, length) in [(512, 8192), (8192, 512), (u64::MAX - 511, 512)] {
            let length = length as usize;
            assert!(part.write_all_at(&data[..length], offset).is_err(), "{offset}");
            assert!(part.read_exact_at(&mut data_of(length), offset).is_err(), "{offset}");
            assert!(part.zero_out(offset, length as u64).is_err(), "{offset}");
        }
        let content = disk.content(0, 64 << 10);
        let is_written = |place: usize| (4096..4096 + 8192).contains(&place);
        let expected = (0..content.len()).map(|place| if is_written(place) { 0 } else { 0xff });
        assert!(content.iter().copied().eq(expected));
        assert_eq!(Section::part(&disk, 60 << 10, 8192).size(), 4096, "cut at the end");
        assert_eq!(Section::part(&disk, 1 << 20, 8192).size(), 0);
    }

    fn data_of(length: usize) -> AlignedBuffer {
        AlignedBuffer::zeroed(length)
    }
}
