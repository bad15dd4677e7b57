//! The pass over a file that can be read only once, from its beginning to its end.
//!
//! The tables are learned as they come by. In the files that tools write, a table comes before what
//! it maps; whatever comes earlier waits in the spool.

use super::Fault;
use super::header::be64;
use super::map::{Piece, SECTOR};
use super::pass::Pass;
use super::spool::Spool;
use super::table::{Stretch, count_entry, l1_entry, read_l2};
use crate::CHUNK;
use crate::buffers::Chunk;
use std::collections::BTreeMap;

/// What a table costs while it is waited for, in bytes.
const AWAITED: u64 = 64;

/// A table that is known to come.
#[derive(Debug, Clone, Copy)]
enum Table {
    L1,
    /// With the index of the L1 entry that names it.
    L2(u64),
    /// The clusters that count references: nothing of them is needed.
    Counts,
    /// A table of those clusters' offsets.
    CountIndex,
}

/// A pass that learns the tables on its way.
pub(crate) struct Streamed<'a> {
    pass: Pass,
    spool: Spool<'a>,
    /// By their place in the file.
    awaited: BTreeMap<u64, Table>,
    /// The table at hand, its bytes so far, and how many it has.
    open: Option<(Table, Vec<u8>, usize)>,
    position: u64,
}

impl<'a> Streamed<'a> {
    pub(super) fn new(mut pass: Pass, spool: Spool<'a>) -> Result<Self, Fault> {
        let header = &pass.header;
        let mut awaited = BTreeMap::from([(header.refcounts_offset, Table::CountIndex)]);
        if awaited.insert(header.l1_offset, Table::L1).is_some() {
            return Err("its L1 table and its refcount table are at the same place".to_owned().into());
        }
        pass.claim_table(0, pass.header.cluster_size())?;
        Ok(Self { pass, spool, awaited, open: None, position: 0 })
    }

    /// Takes the chunk that comes next in the file.
    pub(super) fn chunk(&mut self, chunk: Chunk) -> Result<(), Fault> {
        let step = CHUNK.min(self.pass.header.cluster_size() as usize);
        let mut start = 0;
        while start < chunk.length {
            let end = (start + step).min(chunk.length);
            self.piece(&chunk.filled()[start..end], start)?;
            self.position += (end - start) as u64;
            start = end;
            if self.position.is_multiple_of(self.pass.header.cluster_size()) {
                self.learn()?;
            }
        }
        let received = chunk.received;
        self.pass.send(chunk, received)
    }

    fn piece(&mut self, bytes: &[u8], start: usize) -> Result<(), Fault> {
        if self.position < self.pass.header.cluster_size() {
            return Ok(());
        }
        if let Some(table) = self.awaited.remove(&self.position) {
            self.begin(table)?;
        }
        if let Some((_, read, length)) = &mut self.open {
            let count = bytes.len().min(*length - read.len());
            read.extend_from_slice(&bytes[..count]);
            return Ok(());
        }
        for gap in self.pass.take(bytes, self.position, start)? {
            // Compressed clusters are told in whole sectors.
            let first = gap.start / SECTOR * SECTOR;
            let last = gap.end.next_multiple_of(SECTOR).min(self.position + bytes.len() as u64);
            let gap = &bytes[(first - self.position) as usize..(last - self.position) as usize];
            self.spool.keep(first, gap, &mut self.pass.budget)?;
        }
        Ok(())
    }

    /// Bytes of a table.
    fn length(&self, table: Table) -> u64 {
        let header = &self.pass.header;
        match table {
            Table::L1 => header.l1_bytes(),
            Table::L2(_) | Table::Counts => header.cluster_size(),
            Table::CountIndex => header.refcounts_bytes(),
        }
    }

    fn begin(&mut self, table: Table) -> Result<(), Fault> {
        let length = self.length(table);
        if self.open.is_some() {
            return Err(format!("the table at {} overlaps another one", self.position).into());
        }
        let claimed = length.next_multiple_of(self.pass.header.cluster_size());
        self.pass.claim_table(self.position, self.position + claimed)?;
        self.pass.budget.take(length)?;
        self.open = Some((table, Vec::with_capacity(length as usize), length as usize));
        Ok(())
    }

    /// Reads the table at hand if all of it has come. Nothing else is in its last cluster.
    fn learn(&mut self) -> Result<(), Fault> {
        let complete = self.open.take_if(|(_, read, length)| read.len() == *length);
        let Some((table, bytes, length)) = complete else { return Ok(()) };
        match table {
            Table::L1 => self.learn_l1(&bytes)?,
            Table::L2(index) => self.learn_l2(index, &bytes)?,
            Table::CountIndex => self.learn_refcounts(&bytes)?,
            Table::Counts => {}
        }
        self.pass.budget.give_back(length);
        Ok(())
    }

    fn learn_l1(&mut self, table: &[u8]) -> Result<(), Fault> {
        let coverage = self.pass.header.l2_coverage();
        let cluster_size = self.pass.header.cluster_size();
        for (index, entry) in table.chunks_exact(8).enumerate() {
            let index = index as u64;
            match l1_entry(&self.pass.header, be64(entry, 0))? {
                None => {
                    let guest = index * coverage;
                    self.pass.zero(guest, coverage.min(self.pass.header.virtual_size - guest))?;
                }
                Some(offset) if offset >= self.position => self.wait_for(offset, Table::L2(index))?,
                Some(offset) => {
                    self.claim_late(offset, Table::L2(index))?;
                    let mut table = Vec::with_capacity(cluster_size as usize);
                    self.spool.read(offset, offset + cluster_size, |bytes| {
                        table.extend_from_slice(bytes);
                        Ok(())
                    })?;
                    self.learn_l2(index, &table)?;
                }
            }
        }
        Ok(())
    }

    fn learn_refcounts(&mut self, table: &[u8]) -> Result<(), Fault> {
        for entry in table.chunks_exact(8) {
            match count_entry(&self.pass.header, be64(entry, 0))? {
                None => {}
                Some(offset) if offset >= self.position => self.wait_for(offset, Table::Counts)?,
                // It has passed, and waits in the spool for nothing.
                Some(offset) => self.claim_late(offset, Table::Counts)?,
            }
        }
        Ok(())
    }

    /// Claims the place of a table that came by before it was known to be one, or does not come.
    fn claim_late(&mut self, offset: u64, table: Table) -> Result<(), Fault> {
        let end = offset + self.length(table);
        self.pass.claim_late(&Piece { host: offset, end, guest: 0, is_packed: false })
    }

    fn wait_for(&mut self, offset: u64, table: Table) -> Result<(), Fault> {
        self.pass.budget.take(AWAITED)?;
        match self.awaited.insert(offset, table) {
            None => Ok(()),
            Some(_) => Err(format!("two tables are at {offset}").into()),
        }
    }

    fn learn_l2(&mut self, index: u64, table: &[u8]) -> Result<(), Fault> {
        let header = self.pass.header.clone();
        read_l2(&header, index, table, |stretch| match stretch {
            Stretch::Hole { guest, length } => self.pass.zero(guest, length),
            Stretch::Data { host, guest, length } if host < self.position => self.fetch(host, guest, length),
            Stretch::Data { host, guest, length } => {
                self.pass.map.add_data(host, guest, length, &mut self.pass.budget)
            }
            Stretch::Packed { host, end, guest } if host < self.position => self.unpack(host, end, guest),
            Stretch::Packed { host, end, guest } => {
                self.pass.map.add_packed(host, end, guest, &mut self.pass.budget)
            }
        })?;
        self.pass.map.sort(&mut self.pass.budget);
        Ok(())
    }

    /// Puts a stretch in its place that has waited in the spool.
    fn fetch(&mut self, host: u64, mut guest: u64, length: u64) -> Result<(), Fault> {
        let stretch = self.pass.map.stretch(host, guest, length);
        self.pass.claim_late(&stretch)?;
        let joined = &mut self.pass.unpacker.joined;
        self.spool.read(host, host + length, |bytes| {
            joined.append(guest, bytes)?;
            guest += bytes.len() as u64;
            Ok(())
        })
    }

    fn unpack(&mut self, host: u64, end: u64, guest: u64) -> Result<(), Fault> {
        let piece = Piece { host, end, guest, is_packed: true };
        self.pass.claim_late(&piece)?;
        let mut packed = Vec::with_capacity((end - host) as usize);
        self.spool.read(host, end, |bytes| {
            packed.extend_from_slice(bytes);
            Ok(())
        })?;
        self.pass.unpacker.begin(piece, &packed)
    }

    /// The file has ended. Returns the bytes that had to wait in the spool.
    pub(super) fn finish(&mut self) -> Result<u64, Fault> {
        self.learn()?;
        let missing = self.awaited.iter().find(|(_, table)| matches!(table, Table::L1 | Table::L2(_)));
        let cut = matches!(self.open, Some((Table::L1 | Table::L2(_), ..)));
        if let Some((offset, _)) = missing {
            return Err(format!("the table at {offset} lies behind its end at {}", self.position).into());
        }
        if cut {
            return Err(format!("a table is cut off by its end at {}", self.position).into());
        }
        // Refcounts that the file lacks are missed by nobody, but nothing else may be in their place.
        for (offset, table) in std::mem::take(&mut self.awaited) {
            self.claim_late(offset, table)?;
        }
        self.pass.finish(self.position)?;
        let used = self.spool.used();
        let bytes = used.end - used.start;
        if bytes > 0 {
            self.pass.zero(used.start, bytes)?;
        }
        Ok(bytes)
    }
}
