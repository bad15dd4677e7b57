//! Reading the tables before the pass, from a server that has ranges.

use super::Fault;
use super::claims::Claims;
use super::header::{Header, be64};
use super::map::{Budget, Map, Piece};
use super::table::{Stretch, count_entry, l1_entry, read_l2};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;

/// Bytes asked for at once at most, unless one table is longer.
const BATCH: u64 = 1 << 20;

/// Reads parts of the image file out of order.
pub(crate) trait ReadAt: Sync {
    /// Bytes of the file.
    fn length(&self) -> u64;
    /// Fills the buffer from `offset`.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), crate::Error>;
}

/// What the tables say, and how to know them again.
pub(super) struct Loaded {
    pub(super) map: Map,
    /// Ranges of the disk that read as zeros: offset and length.
    pub(super) holes: Vec<(u64, u64)>,
    pub(super) seals: Seals,
}

/// Reads all tables. `start` is the beginning of the file.
pub(super) fn load(
    header: &Header,
    start: &[u8],
    file: &dyn ReadAt,
    budget: &mut Budget,
) -> Result<Loaded, Fault> {
    let mut loader = Loader {
        header,
        start,
        file,
        loaded: Loaded { map: Map::new(header)?, holes: Vec::new(), seals: Seals::default() },
        budget,
    };
    let tables = loader.l2_tables()?;
    let mut rest = tables.as_slice();
    while !rest.is_empty() {
        let (batch, others) = rest.split_at(loader.batch(rest));
        loader.read_batch(batch)?;
        rest = others;
    }
    let counts = loader.counts()?;
    let mut loaded = loader.loaded;
    loaded.map.sort(budget);
    require_disjoint(header, &tables, &counts, &loaded.map, budget)?;
    Ok(loaded)
}

struct Loader<'a> {
    header: &'a Header,
    start: &'a [u8],
    file: &'a dyn ReadAt,
    loaded: Loaded,
    budget: &'a mut Budget,
}

impl Loader<'_> {
    /// Offset and L1 index of every L2 table, in the order of the file.
    fn l2_tables(&mut self) -> Result<Vec<(u64, u64)>, Fault> {
        let bytes = self.header.l1_bytes();
        self.budget.take(bytes)?;
        let l1 = self.read(self.header.l1_offset, bytes)?;
        let mut tables = Vec::new();
        for (index, entry) in l1.chunks_exact(8).enumerate() {
            let index = index as u64;
            match l1_entry(self.header, be64(entry, 0))? {
                Some(offset) => {
                    self.budget.take(size_of::<(u64, u64)>() as u64)?;
                    tables.push((offset, index));
                }
                None => {
                    let guest = index * self.header.l2_coverage();
                    let length = self.header.l2_coverage().min(self.header.virtual_size - guest);
                    self.add_hole(guest, length)?;
                }
            }
        }
        tables.sort_unstable();
        Ok(tables)
    }

    /// The table of refcounts and the clusters that it names. Only their places are needed, wherever these are, and
    /// of a table that the end of the file cuts off not even what it names.
    fn counts(&mut self) -> Result<Vec<Piece>, Fault> {
        let (offset, bytes) = (self.header.refcounts_offset, self.header.refcounts_bytes());
        let mut counts = vec![table(offset, bytes)];
        if offset + bytes <= self.file.length() {
            self.budget.take(bytes)?;
            for entry in self.read(offset, bytes)?.chunks_exact(8) {
                let cluster = count_entry(self.header, be64(entry, 0))?;
                counts.extend(cluster.map(|offset| table(offset, self.header.cluster_size())));
            }
        }
        counts.sort_unstable_by_key(|piece| piece.host);
        Ok(counts)
    }

    /// How many of the tables can be read together.
    fn batch(&self, tables: &[(u64, u64)]) -> usize {
        let size = self.header.cluster_size();
        let neighbours = tables.windows(2).take_while(|pair| pair[0].0 + size == pair[1].0).count() + 1;
        neighbours.min((BATCH / size).max(1) as usize)
    }

    fn read_batch(&mut self, tables: &[(u64, u64)]) -> Result<(), Fault> {
        let size = self.header.cluster_size();
        let bytes = self.read(tables[0].0, tables.len() as u64 * size)?;
        for ((_, index), table) in tables.iter().zip(bytes.chunks_exact(size as usize)) {
            read_l2(self.header, *index, table, |stretch| self.add(stretch))?;
        }
        Ok(())
    }

    fn add(&mut self, stretch: Stretch) -> Result<(), Fault> {
        match stretch {
            Stretch::Hole { guest, length } => self.add_hole(guest, length),
            Stretch::Data { host, guest, length } => {
                let end = self.loaded.map.stretch(host, guest, length).end;
                self.require_inside(end - self.loaded.map.grain())?;
                self.loaded.map.add_data(host, guest, length, self.budget)
            }
            Stretch::Packed { host, end, guest } => {
                self.require_inside(host)?;
                self.loaded.map.add_packed(host, end, guest, self.budget)
            }
        }
    }

    fn add_hole(&mut self, guest: u64, length: u64) -> Result<(), Fault> {
        match self.loaded.holes.last_mut() {
            Some((start, joined)) if *start + *joined == guest => *joined += length,
            _ => {
                self.budget.take(size_of::<(u64, u64)>() as u64)?;
                self.loaded.holes.push((guest, length));
            }
        }
        Ok(())
    }

    /// Bytes of a table; what was not read with the start of the file gets a seal.
    fn read(&mut self, offset: u64, length: u64) -> Result<Vec<u8>, Fault> {
        let end = offset + length;
        if end > self.file.length() {
            return Err(format!("a table at {offset} lies behind its end at {}", self.file.length()).into());
        }
        if let Some(bytes) = self.start.get(offset as usize..end as usize) {
            return Ok(bytes.to_vec());
        }
        let mut bytes = vec![0; length as usize];
        self.file.read_at(&mut bytes, offset)?;
        self.budget.take(size_of::<Seal>() as u64)?;
        self.loaded.seals.add(offset, &bytes);
        Ok(bytes)
    }

    fn require_inside(&self, host: u64) -> Result<(), Fault> {
        if host < self.file.length() {
            return Ok(());
        }
        Err(format!("a cluster at {host} lies behind its end at {}", self.file.length()).into())
    }
}

/// A stretch of the file that is a table.
fn table(host: u64, length: u64) -> Piece {
    Piece { host, end: host + length, guest: 0, is_packed: false }
}

/// Neither tables nor clusters may overlap.
fn require_disjoint(
    header: &Header,
    tables: &[(u64, u64)],
    counts: &[Piece],
    map: &Map,
    budget: &mut Budget,
) -> Result<(), Fault> {
    let size = header.cluster_size();
    // The header comes first wherever the L1 table is.
    let mut fixed = [table(0, size), table(header.l1_offset, header.l1_clusters())].into_iter().peekable();
    let mut l2 = tables.iter().map(|(offset, _)| table(*offset, size)).peekable();
    let mut counts = counts.iter().copied().peekable();
    let mut data = map.pieces().peekable();
    let mut claims = Claims::default();
    loop {
        let first = [fixed.peek(), l2.peek(), counts.peek(), data.peek()];
        let Some(next) = first.into_iter().flatten().map(|piece| piece.host).min() else { return Ok(()) };
        let is_next = |piece: &Piece| piece.host == next;
        let piece = fixed.next_if(is_next).or_else(|| l2.next_if(is_next));
        let piece = piece.or_else(|| counts.next_if(is_next)).or_else(|| data.next_if(is_next));
        claims.forget_before(next);
        claims.claim(&piece.expect("one of them is the smallest"), budget)?;
    }
}

/// Digests of the tables that were read before the pass, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Seals {
    seals: VecDeque<Seal>,
    /// Of the first seal's bytes that came so far.
    hasher: Sha256,
}

#[derive(Debug)]
struct Seal {
    offset: u64,
    end: u64,
    digest: [u8; 32],
}

impl Seals {
    fn add(&mut self, offset: u64, bytes: &[u8]) {
        let seal = Seal { offset, end: offset + bytes.len() as u64, digest: Sha256::digest(bytes).into() };
        let place = self.seals.partition_point(|other| other.offset < offset);
        self.seals.insert(place, seal);
    }

    /// Compares the tables among bytes of the pass, which lie at `host`, with what was read before.
    pub(super) fn check(&mut self, bytes: &[u8], host: u64) -> Result<(), Fault> {
        let end = host + bytes.len() as u64;
        while let Some(seal) = self.seals.front().filter(|seal| seal.offset < end) {
            let (first, last) = (seal.offset.max(host), seal.end.min(end));
            self.hasher.update(&bytes[(first - host) as usize..(last - host) as usize]);
            if seal.end > end {
                break;
            }
            if <[u8; 32]>::from(self.hasher.finalize_reset()) != seal.digest {
                return Err(Fault::Changed);
            }
            self.seals.pop_front();
        }
        Ok(())
    }

    /// Whether every table has come.
    pub(super) fn is_empty(&self) -> bool {
        self.seals.is_empty()
    }
}
