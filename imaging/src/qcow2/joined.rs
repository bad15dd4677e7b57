//! Bytes for neighbouring places, joined to large writes of whole sectors.
//!
//! An image can be mapped in smaller units than the disk has sectors. What is less than a sector waits in memory
//! for the rest of it, which comes from other places of the file. Each byte of the disk comes once.

use super::Fault;
use super::map::Budget;
use crate::CHUNK;
use crate::buffers::{Chunk, Pool};
use crate::order::{Order, Part};
use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

/// Buffers for joined bytes.
const BUFFERS: usize = 4;
/// Bytes that sectors may take of which a part has not come yet.
const WAITING: usize = 4 << 20;
/// What a sector takes besides its data.
const SECTOR_COST: usize = 64;

/// Joins bytes and has them written.
pub(super) struct Joined {
    orders: SyncSender<Order>,
    pool: Pool,
    /// What is being joined. It begins in the buffer as far from the start as its place is from that of a sector.
    chunk: Option<Chunk>,
    /// Where the first byte of that belongs.
    guest: u64,
    sector: usize,
    /// Sectors of which a part has not come yet, by their place.
    waiting: BTreeMap<u64, Waiting>,
    budget: Budget,
    /// Bytes of the image file so far.
    pub(super) received: u64,
}

/// A sector of which a part has not come yet.
#[derive(Default)]
struct Waiting {
    come: usize,
    /// Nothing while all that came is zeros.
    data: Option<Box<[u8]>>,
}

impl Joined {
    pub(super) fn new(orders: SyncSender<Order>, sector: usize) -> Self {
        Self {
            orders,
            pool: Pool::new(BUFFERS),
            chunk: None,
            guest: 0,
            sector,
            waiting: BTreeMap::new(),
            budget: Budget::new(WAITING),
            received: 0,
        }
    }

    /// How many of `length` bytes for `guest`, which lie at `start` in a buffer, can be written as they lie.
    pub(super) fn whole(&self, guest: u64, start: usize, length: usize) -> usize {
        let is_aligned = guest.is_multiple_of(self.sector as u64) && start.is_multiple_of(self.sector);
        if is_aligned { length / self.sector * self.sector } else { 0 }
    }

    /// Adds bytes that belong at `guest`.
    pub(super) fn append(&mut self, mut guest: u64, mut bytes: &[u8]) -> Result<(), Fault> {
        while !bytes.is_empty() {
            let next = |chunk: &Chunk| self.guest + (chunk.length - self.skipped()) as u64;
            let is_next =
                self.chunk.as_ref().is_some_and(|chunk| next(chunk) == guest && chunk.length < CHUNK);
            if !is_next {
                self.flush()?;
                self.guest = guest;
            }
            let skipped = self.skipped();
            let chunk = self.chunk.get_or_insert_with(|| {
                let mut chunk = self.pool.take();
                chunk.length = skipped;
                chunk
            });
            let count = bytes.len().min(CHUNK - chunk.length);
            let start = chunk.length;
            chunk[start..start + count].copy_from_slice(&bytes[..count]);
            chunk.length += count;
            guest += count as u64;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Has a range made zero.
    pub(super) fn zero(&mut self, offset: u64, length: u64) -> Result<(), Fault> {
        let (sector, end) = (self.sector as u64, offset + length);
        let first = offset.next_multiple_of(sector).min(end);
        let last = (end / sector * sector).max(first);
        self.wait(offset, (first - offset) as usize, None)?;
        if last > first {
            self.send(Order::Zeros { offset: first, length: last - first })?;
        }
        self.wait(last, (end - last) as usize, None)
    }

    /// Sends on what there is.
    pub(super) fn flush(&mut self) -> Result<(), Fault> {
        let Some(mut chunk) = self.chunk.take() else { return Ok(()) };
        let (start, end) = (self.skipped(), chunk.length);
        let first = start.next_multiple_of(self.sector).min(end);
        let last = (end / self.sector * self.sector).max(first);
        let place = |at: usize| self.guest + (at - start) as u64;
        let (middle, after) = (place(first), place(last));
        self.wait(self.guest, first - start, Some(&chunk[start..first]))?;
        self.wait(after, end - last, Some(&chunk[last..end]))?;
        if last > first {
            chunk.received = self.received;
            let parts = vec![Part { start: first, length: last - first, offset: middle }];
            self.send(Order::Data { chunk, parts })?;
        }
        Ok(())
    }

    /// Keeps `length` bytes of one sector, zeros where there is no data, until all of it has come.
    fn wait(&mut self, guest: u64, length: usize, data: Option<&[u8]>) -> Result<(), Fault> {
        if length == 0 {
            return Ok(());
        }
        let within = (guest % self.sector as u64) as usize;
        let place = guest - within as u64;
        let mut waiting = match self.waiting.remove(&place) {
            Some(waiting) => waiting,
            None => {
                self.budget.take(SECTOR_COST as u64)?;
                Waiting::default()
            }
        };
        if let Some(data) = data {
            if waiting.data.is_none() {
                self.budget.take(self.sector as u64)?;
            }
            let sector = waiting.data.get_or_insert_with(|| vec![0; self.sector].into());
            sector[within..within + length].copy_from_slice(data);
        }
        waiting.come += length;
        if waiting.come < self.sector {
            self.waiting.insert(place, waiting);
            return Ok(());
        }
        self.budget.give_back(SECTOR_COST + waiting.data.as_ref().map_or(0, |data| data.len()));
        match waiting.data {
            None => self.send(Order::Zeros { offset: place, length: self.sector as u64 }),
            Some(data) => {
                let mut chunk = self.pool.take();
                chunk[..data.len()].copy_from_slice(&data);
                (chunk.length, chunk.received) = (data.len(), self.received);
                let parts = vec![Part { start: 0, length: data.len(), offset: place }];
                self.send(Order::Data { chunk, parts })
            }
        }
    }

    /// How far the first joined byte lies behind the start of its sector.
    fn skipped(&self) -> usize {
        (self.guest % self.sector as u64) as usize
    }

    fn send(&self, order: Order) -> Result<(), Fault> {
        self.orders.send(order).map_err(|_| Fault::Gone)
    }
}
