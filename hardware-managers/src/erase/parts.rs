//! Parts of a disk as one medium: what is erased of a disk on which something stays.

use super::medium::Medium;
use farrier_disk::Error;
use std::ops::Range;

/// The parts, one behind the other. Each consists of whole sectors.
pub struct Parts<'a> {
    medium: &'a dyn Medium,
    ranges: Vec<Range<u64>>,
}

impl<'a> Parts<'a> {
    /// These ranges of a medium, in bytes.
    pub fn of(medium: &'a dyn Medium, ranges: impl Iterator<Item = Range<u64>>) -> Self {
        Self { medium, ranges: ranges.collect() }
    }

    /// Where on the medium `length` bytes from `offset` of the parts lie: each piece as its offset, and where in the
    /// bytes it is.
    fn pieces(&self, offset: u64, length: u64) -> Vec<(u64, Range<usize>)> {
        let mut pieces = Vec::new();
        let mut start = 0;
        for range in &self.ranges {
            let end = start + (range.end - range.start);
            let (first, last) = (offset.max(start), (offset + length).min(end));
            if first < last {
                let within = (first - offset) as usize..(last - offset) as usize;
                pieces.push((range.start + first - start, within));
            }
            start = end;
        }
        pieces
    }
}

impl Medium for Parts<'_> {
    fn size(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    fn sector_size(&self) -> u32 {
        self.medium.sector_size()
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let pieces = self.pieces(offset, buffer.len() as u64);
        pieces.into_iter().try_for_each(|(place, within)| self.medium.read(&mut buffer[within], place))
    }

    fn write(&self, data: &[u8], offset: u64) -> Result<(), Error> {
        let pieces = self.pieces(offset, data.len() as u64);
        pieces.into_iter().try_for_each(|(place, within)| self.medium.write(&data[within], place))
    }

    fn flush(&self) -> Result<(), Error> {
        self.medium.flush()
    }
}
