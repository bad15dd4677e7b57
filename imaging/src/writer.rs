//! Putting an image on its target, past the page cache, without transferring zeros.
//!
//! Both ends of the target are held back until the image is proven: they carry boot code, partition
//! table and backup table, or what makes a file system valid. Of them the outermost bytes come last, and
//! one sector after all others: without it nobody believes a table or a file system, and a disk writes one
//! sector as a whole or not at all.

use crate::buffers::Chunk;
use crate::error::Error;
use crate::order::{Order, Part};
use crate::queue::Requests;
use crate::readback::Readback;
use crate::target::{END, Target};
use farrier_disk::io::zero::is_zero;
use farrier_linux::aligned::AlignedBuffer;
use std::ops::Range;
use std::sync::Arc;

/// Unit in which zeros are looked for, in bytes; a multiple of every sector size.
const BLOCK: usize = 64 * 1024;
/// Bytes zeroed by one request at most: a disk may take seconds for it, and nobody can interrupt.
const MAX_ZEROS: u64 = 64 << 20;
/// The outermost bytes at least, which hold boot code and what makes small file systems valid.
const SEAL: usize = 4096;
/// The outermost sectors at least: the MBR and the header of a GPT behind it (UEFI 2.10, section 5.3.1).
const SEALED_SECTORS: usize = 2;

/// What of the ends is written when.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// All but the outermost bytes.
    Inner,
    /// These.
    Outer,
    /// The one sector by which the rest is believed, which no other step writes.
    Last,
}

/// Where file systems that do not begin with their mark have it (Linux, `ext4.h`, `f2fs_fs.h`, `btrfs_tree.h`).
const MARKS: &[(usize, &[u8])] = &[(1080, b"\x53\xef"), (1024, b"\x10\x20\xf5\xf2"), (65600, b"_BHRfS_M")];

/// Writes what it is told and holds the ends back.
pub(crate) struct Writer<'a> {
    target: Target<'a>,
    url: &'a str,
    head: End,
    tail: End,
    /// Zeros not yet put on the disk: offset and length.
    zeros: (u64, u64),
    /// Where the image ends, as far as it is known.
    length: u64,
    pub(crate) readback: Readback,
    pub(crate) bytes_written: u64,
    pub(crate) bytes_zeroed: u64,
}

/// An end of the target as it will be. It was made zero when the write began.
struct End {
    start: u64,
    content: AlignedBuffer,
    length: usize,
    /// Bytes of it that the image fills.
    used: usize,
    /// Where its outermost bytes lie in it, and where all others do.
    outer: Range<usize>,
    inner: Range<usize>,
    last: Range<usize>,
    sector: usize,
}

impl End {
    /// The first bytes of a target.
    fn head(target: &Target<'_>) -> Self {
        let length = target.size().min(END) as usize;
        let sector = target.sector_size() as usize;
        let seal = sealed(sector).min(length);
        Self::new(0, length, sector, 0..seal, seal..length)
    }

    /// The last bytes of a target, as far as they are none of the first.
    fn tail(target: &Target<'_>) -> Self {
        let start = target.size().saturating_sub(END).max(target.size().min(END));
        let length = (target.size() - start) as usize;
        let sector = target.sector_size() as usize;
        let seal = length.saturating_sub(sealed(sector));
        Self::new(start, length, sector, seal..length, 0..seal)
    }

    fn new(start: u64, length: usize, sector: usize, outer: Range<usize>, inner: Range<usize>) -> Self {
        let content = AlignedBuffer::zeroed(END as usize);
        Self { start, content, length, used: 0, outer, inner, last: 0..0, sector }
    }

    fn end(&self) -> u64 {
        self.start + self.length as u64
    }

    /// Keeps the part of `data` that belongs here, and tells how much that is; `offset` lies here too.
    fn keep(&mut self, offset: u64, data: &[u8]) -> usize {
        let within = (offset - self.start) as usize;
        let count = data.len().min(self.length - within);
        self.content[within..within + count].copy_from_slice(&data[..count]);
        self.used = self.used.max(within + count);
        count
    }

    /// Chooses the sector that comes last: of a disk its first one, without which nobody believes a table; of a
    /// part of a disk the one by which its file system is known.
    fn choose_last(&mut self, is_whole: bool) {
        let is_marked = |(offset, mark): &&(usize, &[u8])| self.content[*offset..].starts_with(mark);
        let mark = MARKS.iter().filter(|_| !is_whole).find(is_marked).map_or(0, |(offset, _)| *offset);
        let start = mark / self.sector * self.sector;
        self.last = start..start + self.sector;
    }

    /// What belongs to a step, as far as it is used.
    fn parts(&self, step: Step) -> impl Iterator<Item = Range<usize>> {
        let around = |range: &Range<usize>| {
            [range.start..range.end.min(self.last.start), range.start.max(self.last.end)..range.end]
        };
        let parts = match step {
            Step::Inner => around(&self.inner),
            Step::Outer => around(&self.outer),
            Step::Last => [self.last.clone(), 0..0],
        };
        let used = self.used;
        parts
            .into_iter()
            .map(move |part| part.start.min(used)..part.end.min(used))
            .filter(|part| !part.is_empty())
    }
}

impl<'a> Writer<'a> {
    /// A writer to a target that was begun.
    pub(crate) fn new(target: Target<'a>, url: &'a str, readback: Readback) -> Self {
        Self {
            target,
            url,
            head: End::head(&target),
            tail: End::tail(&target),
            zeros: (0, 0),
            length: 0,
            readback,
            bytes_written: 0,
            bytes_zeroed: 0,
        }
    }

    /// Does what an order says, or has it done by the queue.
    pub(crate) fn obey(&mut self, order: Order, queue: &Requests<'_>) -> Result<(), Error> {
        match order {
            Order::Zeros { offset, length } => {
                self.require_room(offset + length)?;
                let end = (offset + length).min(self.tail.start);
                let start = offset.max(self.head.end()).min(end);
                self.zero(start, end - start, queue)
            }
            Order::Data { mut chunk, mut parts } => {
                for part in &mut parts {
                    self.require_room(part.offset + part.length as u64)?;
                    self.fill_sector(&mut chunk, part);
                }
                let chunk = Arc::new(chunk);
                parts.into_iter().try_for_each(|part| self.put(&chunk, part, queue))
            }
        }
    }

    /// Everything was ordered: waits until all of it but the ends is done.
    pub(crate) fn finish(&mut self, queue: &Requests<'_>) -> Result<(), Error> {
        self.flush_zeros(queue)?;
        let zeros_written = queue.finish()?;
        self.bytes_zeroed -= zeros_written;
        self.bytes_written += zeros_written;
        Ok(())
    }

    /// Puts the ends down but for their outermost bytes, now that the image is proven.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        self.require_fitting_sectors()?;
        self.readback.keep_all();
        self.head.choose_last(self.target.is_whole());
        self.put_down(Step::Inner)
    }

    /// Puts the outermost bytes down, now that everything they lead to is there.
    pub(crate) fn seal(&mut self) -> Result<(), Error> {
        self.put_down(Step::Outer)?;
        self.put_down(Step::Last)
    }

    /// Writes a part of the ends and waits for the disk's own cache.
    fn put_down(&mut self, step: Step) -> Result<(), Error> {
        for end in [&self.head, &self.tail] {
            for part in end.parts(step) {
                let (data, offset) = (&end.content[part.clone()], end.start + part.start as u64);
                self.target.sectors().write_all_at(data, offset)?;
                self.readback.add_data(offset, data);
                self.bytes_written += data.len() as u64;
            }
        }
        Ok(self.target.sectors().flush()?)
    }

    /// An image whose table was made for other sectors cannot boot from this disk (F11); where it ends tells more
    /// than where the disk does.
    fn require_fitting_sectors(&self) -> Result<(), Error> {
        let head = &self.head.content[..self.head.length];
        crate::format::require_fitting_sectors(head, self.length, &self.target, self.url)
    }

    /// Fills the last sector of a part up with zeros. What follows it in the chunk belongs nowhere.
    fn fill_sector(&self, chunk: &mut Chunk, part: &mut Part) {
        let length = part.length.next_multiple_of(self.target.sector_size() as usize);
        chunk[part.start + part.length..part.start + length].fill(0);
        part.length = length;
    }

    fn put(&mut self, chunk: &Arc<Chunk>, mut part: Part, queue: &Requests<'_>) -> Result<(), Error> {
        if part.offset < self.head.end() {
            let kept = self.head.keep(part.offset, &chunk[part.range()]);
            part = Part {
                start: part.start + kept,
                length: part.length - kept,
                offset: part.offset + kept as u64,
            };
        }
        if part.length > 0 && part.offset + part.length as u64 > self.tail.start {
            let before = self.tail.start.saturating_sub(part.offset) as usize;
            self.tail.keep(part.offset + before as u64, &chunk[part.range()][before..]);
            part.length = before;
        }
        for (start, run) in runs(&chunk[part.range()]) {
            let position = part.offset + start as u64;
            match run {
                Run::Zeros(length) => self.zero(position, length as u64, queue)?,
                Run::Data(length) => {
                    let start = part.start + start;
                    self.write(chunk, start..start + length, position, queue)?;
                }
            }
        }
        Ok(())
    }

    fn write(
        &mut self,
        chunk: &Arc<Chunk>,
        range: Range<usize>,
        offset: u64,
        queue: &Requests<'_>,
    ) -> Result<(), Error> {
        self.readback.add_data(offset, &chunk[range.clone()]);
        self.bytes_written += range.len() as u64;
        queue.write(chunk, range, offset)
    }

    /// Joins runs of zeros, so that the disk gets few and large requests.
    fn zero(&mut self, offset: u64, length: u64, queue: &Requests<'_>) -> Result<(), Error> {
        if length == 0 {
            return Ok(());
        }
        let length = length.next_multiple_of(self.target.sector_size().into());
        let (start, pending) = self.zeros;
        if start + pending == offset {
            self.zeros.1 += length;
        } else {
            self.flush_zeros(queue)?;
            self.zeros = (offset, length);
        }
        if self.zeros.1 >= MAX_ZEROS {
            self.flush_zeros(queue)?;
        }
        Ok(())
    }

    fn flush_zeros(&mut self, queue: &Requests<'_>) -> Result<(), Error> {
        let (mut offset, mut length) = std::mem::take(&mut self.zeros);
        while length > 0 {
            let count = length.min(MAX_ZEROS);
            self.readback.add_zeros(offset, count);
            self.bytes_zeroed += count;
            queue.zero(offset, count)?;
            (offset, length) = (offset + count, length - count);
        }
        Ok(())
    }

    fn require_room(&mut self, end: u64) -> Result<(), Error> {
        self.length = self.length.max(end);
        if end <= self.target.size() {
            return Ok(());
        }
        Err(self.target.too_small(self.url, end))
    }
}

/// Bytes at either end that come last, of a target with such sectors.
fn sealed(sector: usize) -> usize {
    SEAL.max(SEALED_SECTORS * sector)
}

/// A stretch of a chunk, with its length.
#[derive(Debug, PartialEq, Eq)]
enum Run {
    Zeros(usize),
    Data(usize),
}

/// Cuts a chunk into stretches of zeros and of data, each with its offset in the chunk.
fn runs(chunk: &[u8]) -> Vec<(usize, Run)> {
    let mut runs = Vec::new();
    let mut start = 0;
    while start < chunk.len() {
        let holds_zeros = block_is_zero(&chunk[start..]);
        let mut end = (start + BLOCK).min(chunk.len());
        while end < chunk.len() && block_is_zero(&chunk[end..]) == holds_zeros {
            end = (end + BLOCK).min(chunk.len());
        }
        let length = end - start;
        runs.push((start, if holds_zeros { Run::Zeros(length) } else { Run::Data(length) }));
        start = end;
    }
    runs
}

fn block_is_zero(bytes: &[u8]) -> bool {
    is_zero(&bytes[..BLOCK.min(bytes.len())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::Pool;
    use crate::disk_support::TestDisk;
    use crate::queue::Queue;
    use crate::readback::Verify;
    use farrier_disk::io::MemoryDisk;
    use proptest::prelude::*;

    #[test]
    fn loop_x36_neither_header_of_a_gpt_is_there_before_all_else_is() {
        for sector in [512, 4096] {
            let disk = TestDisk::new(4 * END, sector as u32);
            let target = Target::whole(disk.disk());
            let mut writer = Writer::new(target, "http://x", Readback::new(Verify::Off, None));
            let queue = Queue::default();
            for offset in [0, 3 * END] {
                let mut chunk = Pool::new(1).take();
                chunk.fill(7);
                let parts = vec![Part { start: 0, length: END as usize, offset }];
                writer.obey(Order::Data { chunk, parts }, &queue.open()).unwrap();
            }
            let mut found = AlignedBuffer::zeroed(sector);
            let mut is_there = |offset: u64| {
                target.sectors().read_exact_at(&mut found, offset).unwrap();
                found[0] == 7
            };
            let (mbr, primary, backup) = (0, sector as u64, 4 * END - sector as u64);
            writer.settle().unwrap();
            assert!([mbr, primary, backup].iter().all(|place| !is_there(*place)), "{sector}");
            assert!(is_there(sealed(sector) as u64) && is_there(3 * END), "{sector}");
            writer.put_down(Step::Outer).unwrap();
            assert!(!is_there(mbr) && is_there(primary) && is_there(backup), "{sector}");
            writer.put_down(Step::Last).unwrap();
            assert!(is_there(mbr), "{sector}");
        }
    }

    #[test]
    fn x36_an_end_that_cannot_be_written_leaves_no_sector_that_announces_a_table() {
        for (sector, broken) in [(512, 4 * END - 512), (4096, 4 * END - 4096), (512, 512), (4096, 4096)] {
            let disk = MemoryDisk::zeros(4 * END, sector).broken_at(broken);
            let mut writer = Writer::new((&disk).into(), "http://x", Readback::new(Verify::Off, None));
            let queue = Queue::default();
            let outcome: Result<(), Error> = [0, 3 * END].into_iter().try_for_each(|offset| {
                let mut chunk = Pool::new(1).take();
                chunk.fill(7);
                let parts = vec![Part { start: 0, length: END as usize, offset }];
                writer.obey(Order::Data { chunk, parts }, &queue.open())
            });
            outcome.unwrap();
            let outcome = writer.settle().and_then(|()| writer.put_down(Step::Outer));
            assert!(outcome.is_err(), "{sector} {broken}");
            assert_eq!(disk.content(0, sector as usize), vec![0; sector as usize], "{sector} {broken}");
        }
    }

    #[test]
    fn x33_the_sector_by_which_a_file_system_is_known_comes_last() {
        for (sector, mark, is_whole, expected) in [
            (512, Some(0), false, 1024),
            (512, Some(1), false, 1024),
            (512, Some(2), false, 65536),
            (512, None, false, 0),
            (512, Some(0), true, 0),
            (4096, Some(0), false, 0),
            (4096, Some(2), false, 65536),
        ] {
            let mut head = End::new(0, END as usize, sector, 0..SEAL, SEAL..END as usize);
            if let Some((offset, mark)) = mark.map(|number: usize| MARKS[number]) {
                head.keep(offset as u64, mark);
            }
            head.used = head.length;
            head.choose_last(is_whole);
            let last: Vec<_> = head.parts(Step::Last).collect();
            assert_eq!((last.len(), &last[0]), (1, &(expected..expected + sector)), "{sector} {mark:?}");
            let mut all: Vec<_> = [Step::Inner, Step::Outer, Step::Last]
                .map(|step| head.parts(step))
                .into_iter()
                .flatten()
                .collect();
            all.sort_by_key(|part| part.start);
            assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start), "{all:?}");
            assert_eq!((all[0].start, all[all.len() - 1].end), (0, head.length), "{all:?}");
            head.used = 700;
            let parts =
                [Step::Inner, Step::Outer, Step::Last].map(|step| head.parts(step)).into_iter().flatten();
            assert_eq!(parts.map(|part| part.len()).sum::<usize>(), 700);
        }
    }

    #[test]
    fn runs_are_cut_at_block_borders() {
        let mut chunk = vec![0; 5 * BLOCK + 512];
        chunk[2 * BLOCK + 17] = 1;
        chunk[5 * BLOCK + 511] = 1;
        let lengths: Vec<_> = runs(&chunk)
            .into_iter()
            .map(|(start, run)| match run {
                Run::Zeros(length) => (start, 'z', length),
                Run::Data(length) => (start, 'd', length),
            })
            .collect();
        assert_eq!(
            lengths,
            [
                (0, 'z', 2 * BLOCK),
                (2 * BLOCK, 'd', BLOCK),
                (3 * BLOCK, 'z', 2 * BLOCK),
                (5 * BLOCK, 'd', 512)
            ]
        );
        assert_eq!(runs(&[]), []);
    }

    proptest! {
        #[test]
        fn runs_put_together_are_the_chunk(marks in proptest::collection::vec(0..8 * BLOCK, 0..12), tail in 0..BLOCK) {
            let mut chunk = vec![0; 8 * BLOCK + tail];
            marks.iter().for_each(|mark| chunk[*mark] = 1);
            let mut joined = Vec::new();
            for (start, run) in runs(&chunk) {
                prop_assert_eq!(start, joined.len());
                match run {
                    Run::Zeros(length) => joined.resize(joined.len() + length, 0),
                    Run::Data(length) => joined.extend_from_slice(&chunk[start..start + length]),
                }
            }
            prop_assert_eq!(joined, chunk);
        }
    }
}
