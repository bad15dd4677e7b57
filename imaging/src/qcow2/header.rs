//! The header of a qcow2 image, and what is refused at the sight of it.
//!
//! Numbers are big-endian. Everything an image could use to point outside itself is refused here,
//! before any offset is followed (S11).

/// First bytes of every image.
pub(crate) const MAGIC: &[u8] = b"QFI\xfb";
/// Bytes of a version 2 header, and the least of a version 3 header.
const LENGTH_V2: usize = 72;
const LENGTH_V3: usize = 104;
/// Powers of two a cluster may be, in bytes.
const CLUSTER_BITS: std::ops::RangeInclusive<u32> = 9..=21;
/// Extended entries divide a cluster by 32, and the parts are sectors at least.
const EXTENDED_CLUSTER_BITS: u32 = 14;

/// Most entries of an L1 table, snapshots, and bytes of the table of refcounts: QEMU takes no more.
const MOST_L1: u32 = 1 << 22;
const MOST_SNAPSHOTS: u32 = 1 << 16;
const MOST_REFCOUNTS: u64 = 8 << 20;
/// Bits of a refcount at most, as a power of two.
const MOST_REFCOUNT_ORDER: u32 = 6;

/// Incompatible features.
const DIRTY: u64 = 1 << 0;
const CORRUPT: u64 = 1 << 1;
const EXTERNAL_DATA: u64 = 1 << 2;
const COMPRESSION: u64 = 1 << 3;
const EXTENDED: u64 = 1 << 4;

/// How compressed clusters are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// A deflate stream without a wrapper.
    Deflate,
    /// A Zstandard frame.
    Zstd,
}

/// What the header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) cluster_bits: u32,
    /// Bytes of the disk that the image describes.
    pub(super) virtual_size: u64,
    pub(super) l1_offset: u64,
    pub(super) refcounts_offset: u64,
    pub(super) refcounts_clusters: u32,
    pub(super) method: Method,
    /// Entries of 16 bytes, which divide a cluster by 32.
    pub(super) is_extended: bool,
}

impl Header {
    /// Reads the header; the error is the reason for which the image is refused.
    pub(super) fn parse(start: &[u8]) -> Result<Self, String> {
        if start.len() < LENGTH_V2 || !start.starts_with(MAGIC) {
            return Err("its header is cut off".to_owned());
        }
        let version = be32(start, 4);
        let features = match version {
            2 => 0,
            3 if start.len() >= LENGTH_V3 => be64(start, 72),
            3 => return Err("its header is cut off".to_owned()),
            other => return Err(format!("version {other} is unknown: give version 2 or 3")),
        };
        refuse_references(start, features)?;
        let header = Self {
            version,
            cluster_bits: be32(start, 20),
            virtual_size: be64(start, 24),
            l1_offset: be64(start, 40),
            refcounts_offset: be64(start, 48),
            refcounts_clusters: be32(start, 56),
            method: method(start, features)?,
            is_extended: features & EXTENDED != 0,
        };
        header.require_sound(be32(start, 36))?;
        header.require_usual(start)?;
        Ok(header)
    }

    fn require_sound(&self, l1_entries: u32) -> Result<(), String> {
        let bits = self.cluster_bits;
        if !CLUSTER_BITS.contains(&bits) || (self.is_extended && bits < EXTENDED_CLUSTER_BITS) {
            return Err(format!("clusters of 2^{bits} bytes are not allowed"));
        }
        if self.virtual_size == 0 || !self.virtual_size.is_multiple_of(512) {
            return Err(format!("a disk of {} bytes is no whole number of sectors", self.virtual_size));
        }
        // Also keeps every sum of guest offsets far from overflowing.
        if self.virtual_size > 1 << 62 {
            return Err(format!("a disk of {} bytes cannot be", self.virtual_size));
        }
        if u64::from(l1_entries) < self.l1_used() {
            return Err(format!("its L1 table has {l1_entries} entries, {} are needed", self.l1_used()));
        }
        for (name, offset) in [("L1 table", self.l1_offset), ("refcount table", self.refcounts_offset)] {
            if offset < self.cluster_size() || offset % self.cluster_size() != 0 || offset > 1 << 62 {
                return Err(format!("its {name} at {offset} is at no place for one"));
            }
        }
        Ok(())
    }

    /// Refuses what nothing here depends on, but QEMU does not take.
    fn require_usual(&self, start: &[u8]) -> Result<(), String> {
        let (l1_entries, snapshots, snapshots_offset) = (be32(start, 36), be32(start, 60), be64(start, 64));
        let (order, length) = match self.version {
            2 => (4, LENGTH_V2 as u32),
            _ => (be32(start, 96), be32(start, 100)),
        };
        let has_length =
            self.version == 2 || (LENGTH_V3 as u64..=self.cluster_size()).contains(&length.into());
        let has_place = snapshots == 0 || snapshots_offset >= self.cluster_size();
        let has_snapshots = has_place
            && snapshots <= MOST_SNAPSHOTS
            && snapshots_offset < 1 << 62
            && snapshots_offset % self.cluster_size() == 0;
        for (name, is_usual) in [
            ("header has a length", has_length),
            ("refcounts have a width", order <= MOST_REFCOUNT_ORDER),
            ("table of refcounts has a size", (1..=MOST_REFCOUNTS).contains(&self.refcounts_bytes())),
            ("L1 table has a size", l1_entries <= MOST_L1),
            ("list of snapshots has a place or a size", has_snapshots),
            ("header has extensions", has_length && self.has_whole_extensions(start, length as usize)),
        ] {
            if !is_usual {
                return Err(format!("its {name} that cannot be: convert it again with qemu-img convert"));
            }
        }
        Ok(())
    }

    /// Whether the extensions behind the header end within the first cluster.
    fn has_whole_extensions(&self, start: &[u8], mut at: usize) -> bool {
        let end = self.cluster_size() as usize;
        while at < end {
            let (Some(kind), Some(length)) = (start.get(at..at + 4), start.get(at + 4..at + 8)) else {
                // A file that is cut off here is refused for that.
                return at + 8 <= end;
            };
            let length = be32(length, 0) as usize;
            if at + 8 > end || length > end - at - 8 {
                return false;
            }
            if kind == [0; 4] {
                return true;
            }
            at += 8 + length.next_multiple_of(8);
        }
        true
    }

    /// Bytes of the table of refcounts.
    pub(super) fn refcounts_bytes(&self) -> u64 {
        u64::from(self.refcounts_clusters) << self.cluster_bits
    }

    pub(super) fn cluster_size(&self) -> u64 {
        1 << self.cluster_bits
    }

    /// The unit in which guest bytes are mapped, as a power of two: a cluster or a 32nd of it.
    pub(super) fn grain_bits(&self) -> u32 {
        if self.is_extended { self.cluster_bits - 5 } else { self.cluster_bits }
    }

    /// Guest bytes that one L2 table maps.
    pub(super) fn l2_coverage(&self) -> u64 {
        let entry_bits = if self.is_extended { 4 } else { 3 };
        1 << (2 * self.cluster_bits - entry_bits)
    }

    /// Entries of the L1 table that describe the disk; more may describe a saved machine's state.
    pub(super) fn l1_used(&self) -> u64 {
        self.virtual_size.div_ceil(self.l2_coverage())
    }

    /// Bytes of the used part of the L1 table.
    pub(super) fn l1_bytes(&self) -> u64 {
        self.l1_used() * 8
    }

    /// Bytes of the clusters in which that part lies, where nothing else may be.
    pub(super) fn l1_clusters(&self) -> u64 {
        self.l1_bytes().next_multiple_of(self.cluster_size())
    }
}

fn refuse_references(start: &[u8], features: u64) -> Result<(), String> {
    if be64(start, 8) != 0 {
        return Err("it needs a backing file: give an image that stands alone".to_owned());
    }
    if features & EXTERNAL_DATA != 0 {
        return Err("its data is in another file: give an image that stands alone".to_owned());
    }
    if be32(start, 32) != 0 {
        return Err("it is encrypted: give an image that is not".to_owned());
    }
    if features & CORRUPT != 0 {
        return Err("it is marked as corrupt: repair it with qemu-img check -r".to_owned());
    }
    match features & !(DIRTY | COMPRESSION | EXTENDED) {
        0 => Ok(()),
        unknown => Err(format!("it needs unknown features ({unknown:#x}): convert it with older options")),
    }
}

fn method(start: &[u8], features: u64) -> Result<Method, String> {
    let has_field = be32(start, 4) == 3 && be32(start, 100) as usize > LENGTH_V3 && start.len() > LENGTH_V3;
    let number = if has_field { start[LENGTH_V3] } else { 0 };
    match (features & COMPRESSION != 0, number) {
        (false, 0) => Ok(Method::Deflate),
        (true, 1) => Ok(Method::Zstd),
        (_, other) => Err(format!("its compression method {other} is unknown: give zlib or zstd")),
    }
}

pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("the slice has four bytes"))
}

pub(super) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("the slice has eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A header of version 3 for one GiB in clusters of 64 KiB.
    fn valid() -> Vec<u8> {
        let mut header = vec![0; 112];
        header[..4].copy_from_slice(MAGIC);
        for (at, value) in [(4, 3), (20, 16), (36, 2), (56, 1), (96, 4), (100, 112)] {
            header[at..at + 4].copy_from_slice(&u32::to_be_bytes(value));
        }
        for (at, value) in [(24, 1 << 30), (40, 0x30000), (48, 0x10000)] {
            header[at..at + 8].copy_from_slice(&u64::to_be_bytes(value));
        }
        header
    }

    #[test]
    fn geometry_follows_the_cluster_size() {
        let header = Header::parse(&valid()).unwrap();
        assert_eq!((header.l2_coverage(), header.l1_used(), header.grain_bits()), (512 << 20, 2, 16));
        let mut extended = valid();
        extended[79] = 0x10;
        extended[39] = 4;
        let header = Header::parse(&extended).unwrap();
        assert_eq!((header.l2_coverage(), header.l1_used(), header.grain_bits()), (256 << 20, 4, 11));
    }

    #[test]
    fn s11_whatever_points_outside_or_is_unknown_is_refused() {
        for (at, value, reason) in [
            (15, 1, "backing file"),
            (79, 1 << 2, "another file"),
            (35, 1, "encrypted"),
            (35, 2, "encrypted"),
            (79, 1 << 1, "corrupt"),
            (79, 1 << 5, "unknown features (0x20)"),
            (72, 1 << 7, "unknown features"),
            (79, 1 << 3, "compression method 0"),
            (104, 1, "compression method 1"),
            (7, 1, "version 1"),
            (7, 4, "version 4"),
            (23, 8, "2^8"),
            (23, 22, "2^22"),
            (31, 1, "sectors"),
            (24, 0x7f, "cannot be"),
            (39, 1, "L1 table has 1"),
            (46, 1, "L1 table at"),
            (48, 0x7f, "refcount table at"),
            (45, 0, "L1 table at 0"),
            (36, 1, "L1 table has a size"),
            (99, 7, "refcounts have a width"),
            (103, 103, "header has a length"),
            (101, 2, "header has a length"),
            (59, 0, "table of refcounts has a size"),
            (59, 129, "table of refcounts has a size"),
            (61, 2, "snapshots"),
            (71, 1, "snapshots"),
            (63, 1, "snapshots"),
        ] {
            let mut header = valid();
            header[at] = value;
            let error = Header::parse(&header).unwrap_err();
            assert!(error.contains(reason), "byte {at} = {value}: {error}");
        }
        let mut endless = valid();
        endless.resize(128, 0);
        endless[112..120].copy_from_slice(&[1, 2, 3, 4, 0, 1, 0, 0]);
        assert!(Header::parse(&endless).unwrap_err().contains("extensions"));
        let mut extended = valid();
        (extended[79], extended[23]) = (0x10, 13);
        assert!(Header::parse(&extended).unwrap_err().contains("2^13"));
    }

    #[test]
    fn a_dirty_image_and_an_old_header_are_accepted() {
        let mut header = valid();
        header[79] = 1;
        assert!(Header::parse(&header).is_ok());
        header[7] = 2;
        assert!(Header::parse(&header[..72]).is_ok());
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged_without_a_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..120),
            is_magic: bool,
        ) {
            if is_magic && bytes.len() >= 8 {
                bytes[..8].copy_from_slice(b"QFI\xfb\0\0\0\x03");
            }
            Header::parse(&bytes).ok();
        }
    }
}
