//! The one pass over the bytes of the file: each goes where the map says.

use super::Fault;
use super::claims::Claims;
use super::cluster::Unpacker;
use super::header::Header;
use super::joined::Joined;
use super::map::{Budget, Map, Piece, SECTOR};
use crate::buffers::Chunk;
use crate::order::{Order, Part};
use std::ops::Range;
use std::sync::mpsc::SyncSender;

/// A pass that has come so far.
pub(super) struct Pass {
    pub(super) header: Header,
    pub(super) map: Map,
    pub(super) budget: Budget,
    pub(super) unpacker: Unpacker,
    claims: Claims,
    /// Whether some bytes of the next stretch are done.
    is_begun: bool,
    /// End of the last compressed cluster. Another one may begin in its last sector.
    packed_end: u64,
    orders: SyncSender<Order>,
    /// Parts of the chunk at hand.
    parts: Vec<Part>,
}

impl Pass {
    pub(super) fn new(
        header: Header,
        map: Map,
        budget: Budget,
        orders: SyncSender<Order>,
        sector_size: u32,
    ) -> Result<Self, Fault> {
        let mut joined = Joined::new(orders.clone(), sector_size as usize);
        // What the last sector has behind the end of the image reads as zeros.
        let end = header.virtual_size.next_multiple_of(sector_size.into());
        joined.zero(header.virtual_size, end - header.virtual_size)?;
        let unpacker = Unpacker::new(header.method, map.cluster_size(), header.virtual_size, joined)?;
        Ok(Self {
            header,
            map,
            budget,
            unpacker,
            claims: Claims::default(),
            is_begun: false,
            packed_end: 0,
            orders,
            parts: Vec::new(),
        })
    }

    /// Has a range of the disk made zero.
    pub(super) fn zero(&mut self, offset: u64, length: u64) -> Result<(), Fault> {
        self.unpacker.joined.zero(offset, length)
    }

    /// Claims bytes of the file that came by before it was known what they are.
    pub(super) fn claim_late(&mut self, piece: &Piece) -> Result<(), Fault> {
        self.claims.claim(piece, &mut self.budget)
    }

    /// Claims bytes of the file that are a table.
    pub(super) fn claim_table(&mut self, host: u64, end: u64) -> Result<(), Fault> {
        self.require_unmapped(end)?;
        self.claims.claim(&Piece { host, end, guest: 0, is_packed: false }, &mut self.budget)
    }

    /// Takes `bytes`, which lie at `host` in the file and at `start` in the chunk at hand. Returns
    /// the ranges of the file among them of which the map knows nothing.
    pub(super) fn take(&mut self, bytes: &[u8], host: u64, start: usize) -> Result<Vec<Range<u64>>, Fault> {
        let end = host + bytes.len() as u64;
        let mut gaps = Vec::new();
        let mut position = host + self.unpacker.go_on(bytes)? as u64;
        while let Some(piece) = self.map.peek().filter(|piece| piece.host < end) {
            if !self.is_begun {
                self.require_unmapped(host)?;
                self.claims.claim(&piece, &mut self.budget)?;
            }
            if piece.host > position {
                gaps.push(self.unknown_from(position, host)..piece.host);
            }
            position = position.max(piece.end.min(end));
            if piece.is_packed {
                self.packed_end = piece.end;
                self.unpacker.begin(piece, &bytes[(piece.host - host) as usize..])?;
            } else {
                let first = piece.host.max(host);
                let last = piece.end.min(end);
                let within = (first - host) as usize;
                self.place(&piece, first, &bytes[within..(last - host) as usize], start + within)?;
                self.is_begun = piece.end > end;
                if self.is_begun {
                    break;
                }
            }
            self.map.advance();
        }
        if position < end || self.packed_end == end {
            gaps.push(self.unknown_from(position, host)..end);
        }
        Ok(gaps)
    }

    /// Where bytes begin of which nothing is known, if what is known ends at `position`. What lies
    /// before `host` was told already.
    fn unknown_from(&self, position: u64, host: u64) -> u64 {
        if position == self.packed_end { host.max(position.saturating_sub(SECTOR)) } else { position }
    }

    /// Sends the parts of the chunk on their way.
    pub(super) fn send(&mut self, mut chunk: Chunk, received: u64) -> Result<(), Fault> {
        self.unpacker.joined.received = received;
        chunk.received = received;
        let parts = std::mem::take(&mut self.parts);
        self.orders.send(Order::Data { chunk, parts }).map_err(|_| Fault::Gone)
    }

    /// The file has ended after `length` bytes. What the last cluster lacks reads as zeros.
    pub(super) fn finish(&mut self, length: u64) -> Result<(), Fault> {
        self.unpacker.finish()?;
        while let Some(piece) = self.map.peek() {
            let last = if piece.is_packed { piece.host } else { piece.end - self.map.grain() };
            if last >= length || piece.is_packed {
                return Err(format!("the cluster at {last} lies behind its end at {length}").into());
            }
            let rest = piece.guest + (length - piece.host);
            let end = (piece.guest + (piece.end - piece.host)).min(self.header.virtual_size);
            self.zero(rest, end.saturating_sub(rest))?;
            self.map.advance();
        }
        Ok(())
    }

    /// Nothing of what is still to come may lie before `position`.
    fn require_unmapped(&self, position: u64) -> Result<(), Fault> {
        match self.map.peek() {
            Some(piece) if piece.host < position => {
                Err(format!("the cluster at {} overlaps another one", piece.host).into())
            }
            _ => Ok(()),
        }
    }

    /// Has the bytes of a stretch written which lie at `first` in the file and at `start` in the chunk at hand:
    /// out of the chunk where they are whole sectors of the disk, else together with what else these hold.
    fn place(&mut self, piece: &Piece, first: u64, bytes: &[u8], start: usize) -> Result<(), Fault> {
        let guest = piece.guest + (first - piece.host);
        let room = self.header.virtual_size.saturating_sub(guest);
        let bytes = &bytes[..bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        let joined = &mut self.unpacker.joined;
        let whole = joined.whole(guest, start, bytes.len());
        if whole > 0 {
            Part { start, length: whole, offset: guest }.add_to(&mut self.parts);
        }
        joined.append(guest + whole as u64, &bytes[whole..])
    }
}
