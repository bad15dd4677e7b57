//! Which bytes of the file belong where on the disk, in the order of the file.

use super::Fault;
use super::header::Header;

/// Marks a compressed cluster in [`Extent::size`].
const PACKED: u32 = 1 << 31;
/// Unit in which the length of compressed clusters is told, in bytes.
pub(super) const SECTOR: u64 = 512;

/// A stretch of the file; 16 bytes, because there can be a million of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    /// First byte in the file.
    host: u64,
    /// Where it belongs, in grains.
    guest: u32,
    /// Grains; or the sectors of one compressed cluster, marked.
    size: u32,
}

/// A stretch of the file in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) host: u64,
    pub(super) end: u64,
    pub(super) guest: u64,
    pub(super) is_packed: bool,
}

/// The memory that tables and map may still take, in bytes (S12).
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Self { left: bytes }
    }

    /// Takes so many bytes out.
    pub(super) fn take(&mut self, bytes: u64) -> Result<(), Fault> {
        let left = usize::try_from(bytes).ok().and_then(|bytes| self.left.checked_sub(bytes));
        self.left = left.ok_or(Fault::Memory)?;
        Ok(())
    }

    pub(super) fn give_back(&mut self, bytes: usize) {
        self.left += bytes;
    }
}

/// The stretches that are still to come.
#[derive(Debug)]
pub(super) struct Map {
    grain_bits: u32,
    cluster_bits: u32,
    extents: Vec<Extent>,
    /// Extents before this one are done.
    next: usize,
}

impl Map {
    pub(super) fn new(header: &Header) -> Result<Self, Fault> {
        let grain_bits = header.grain_bits();
        if header.virtual_size.div_ceil(1 << grain_bits) > u64::from(u32::MAX) {
            return Err(format!("its disk has too many clusters of {} bytes", header.cluster_size()).into());
        }
        Ok(Self { grain_bits, cluster_bits: header.cluster_bits, extents: Vec::new(), next: 0 })
    }

    /// Adds bytes that go to the disk as they are.
    pub(super) fn add_data(
        &mut self,
        host: u64,
        guest: u64,
        length: u64,
        budget: &mut Budget,
    ) -> Result<(), Fault> {
        let guest = (guest >> self.grain_bits) as u32;
        let size = length.div_ceil(1 << self.grain_bits) as u32;
        let next = self.next;
        if let Some(last) = self.extents[next..].last_mut() {
            let is_next = last.host + (u64::from(last.size) << self.grain_bits) == host
                && last.guest.checked_add(last.size) == Some(guest)
                && last.size < PACKED - size;
            if last.size & PACKED == 0 && is_next {
                last.size += size;
                return Ok(());
            }
        }
        self.push(Extent { host, guest, size }, budget)
    }

    /// Adds a compressed cluster.
    pub(super) fn add_packed(
        &mut self,
        host: u64,
        end: u64,
        guest: u64,
        budget: &mut Budget,
    ) -> Result<(), Fault> {
        let sectors = (end - host / SECTOR * SECTOR) / SECTOR;
        let guest = (guest >> self.grain_bits) as u32;
        self.push(Extent { host, guest, size: PACKED | sectors as u32 }, budget)
    }

    fn push(&mut self, extent: Extent, budget: &mut Budget) -> Result<(), Fault> {
        budget.take(size_of::<Extent>() as u64)?;
        if self.extents.len() == self.extents.capacity() {
            // Doubling would take twice what the budget allows.
            self.extents.reserve_exact(self.extents.len() / 8 + 1024);
        }
        self.extents.push(extent);
        Ok(())
    }

    /// Puts what was added in the order of the file and forgets what is done.
    pub(super) fn sort(&mut self, budget: &mut Budget) {
        self.extents.drain(..self.next);
        budget.give_back(self.next * size_of::<Extent>());
        self.next = 0;
        self.extents.sort_unstable_by_key(|extent| extent.host);
    }

    /// The stretch that comes next.
    pub(super) fn peek(&self) -> Option<Piece> {
        self.extents.get(self.next).map(|extent| self.piece(extent))
    }

    /// Counts the next stretch as done.
    pub(super) fn advance(&mut self) {
        self.next += 1;
    }

    /// All stretches that are still to come.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.extents[self.next..].iter().map(|extent| self.piece(extent))
    }

    fn piece(&self, extent: &Extent) -> Piece {
        let is_packed = extent.size & PACKED != 0;
        let size = u64::from(extent.size & !PACKED);
        let end = match is_packed {
            true => extent.host / SECTOR * SECTOR + size * SECTOR,
            false => extent.host + (size << self.grain_bits),
        };
        Piece { host: extent.host, end, guest: u64::from(extent.guest) << self.grain_bits, is_packed }
    }

    /// The stretch of so many bytes, in whole grains.
    pub(super) fn stretch(&self, host: u64, guest: u64, length: u64) -> Piece {
        let end = host + length.next_multiple_of(self.grain());
        Piece { host, end, guest, is_packed: false }
    }

    /// Bytes of the unit in which guest bytes are mapped.
    pub(super) fn grain(&self) -> u64 {
        1 << self.grain_bits
    }

    /// Bytes a compressed cluster has when it is unpacked.
    pub(super) fn cluster_size(&self) -> usize {
        1 << self.cluster_bits
    }
}
