//! Where formats put what they are known by: the beginning and the end of a volume, and copies of superblocks at
//! fixed distances from its beginning.

use crate::table::read_exact_at;
use std::io::{self, Read, Seek};
use std::ops::Range;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Bytes at either end of a volume that hold signatures.
///
/// At the beginning the second header of LUKS2 lies deepest, at 4 MiB at most (cryptsetup, `luks2_disk_metadata.c`);
/// ZFS has its labels at 0 and 256 KiB, VMFS its records at 1 and 2 MiB. At the end lie md 0.90 (64 to 128 KiB before
/// it), md 1.0, DRBD, DDF, IMSM and the other formats of firmware RAID (up to 257 sectors), NILFS2, the anchors of UDF,
/// the last two labels of ZFS (up to 768 KiB), a superblock of bcachefs (1 MiB) and the copy of a GPT.
pub(crate) const ENDS: u64 = 5 * MIB;

/// A superblock at a fixed distance from the beginning of its volume.
struct Copy {
    /// libblkid's name of the format.
    kind: &'static str,
    /// Where it begins, and how many bytes it has.
    at: u64,
    length: u64,
    /// By which bytes it is known, and where in it they lie.
    mark_at: u64,
    mark: &'static [u8],
}

/// Copies that lie behind [`ENDS`].
const COPIES: &[Copy] = &[
    // Ceph 19.2 and later, `BlueStore.cc`: a label in each of these places that the device has.
    Copy::of_blue_store(GIB),
    Copy::of_blue_store(10 * GIB),
    Copy::of_blue_store(100 * GIB),
    Copy::of_blue_store(1000 * GIB),
    // Linux, `btrfs_sb_offset`, and the third mirror of old versions.
    Copy::of_btrfs(64 * MIB),
    Copy::of_btrfs(256 * GIB),
    Copy::of_btrfs(1 << 50),
    // VMFS has its file system 2 MiB into the first extent, which begins at 16 MiB.
    Copy { kind: "VMFS", at: 18 * MIB, length: 4 * KIB, mark_at: 0, mark: &[0x5e, 0xf1, 0xab, 0x2f] },
];

impl Copy {
    const fn of_blue_store(at: u64) -> Self {
        Self { kind: "ceph_bluestore", at, length: 4 * KIB, mark_at: 0, mark: b"bluestore block device" }
    }

    const fn of_btrfs(at: u64) -> Self {
        Self { kind: "btrfs", at, length: 4 * KIB, mark_at: 64, mark: b"_BHRfS_M" }
    }
}

/// Where a volume of `size` bytes from `start` may have something by which content is recognised. The ranges may
/// overlap in a small one; all lie in the volume.
pub fn places(start: u64, size: u64) -> impl Iterator<Item = Range<u64>> {
    let length = ENDS.min(size);
    let end = start.saturating_add(size);
    let copies = COPIES.iter().filter(move |copy| copy.at < size);
    let of_copy = move |copy: &Copy| start + copy.at..(start + copy.at + copy.length).min(end);
    [start..start + length, end - length..end].into_iter().chain(copies.map(of_copy))
}

/// The copies of superblocks in such a volume: their kinds, and where on the disk their marks are.
///
/// # Errors
///
/// Whatever reading brings.
pub(super) fn copies_in(
    source: &mut (impl Read + Seek),
    start: u64,
    size: u64,
) -> io::Result<Vec<(&'static str, u64)>> {
    let mut found = Vec::new();
    for copy in COPIES.iter().filter(|copy| copy.at + copy.length <= size) {
        let mut mark = vec![0; copy.mark.len()];
        let place = start + copy.at + copy.mark_at;
        read_exact_at(source, place, &mut mark)?;
        if mark == copy.mark {
            found.push((copy.kind, place));
        }
    }
    Ok(found)
}

/// Smallest allocation group of XFS (Linux, `XFS_AG_MIN_BYTES`).
const LEAST_GROUP: u64 = 16 * MIB;
/// Bytes of the sectors in which superblocks of XFS lie, at most (`XFS_MAX_SECTORSIZE`).
const XFS_SUPERBLOCK: u64 = 32 * KIB;

/// Where such a volume has copies of its superblock that no table of places knows: XFS begins each of its allocation
/// groups with one, and a partition that is made there later is taken for a file system.
///
/// # Errors
///
/// Whatever reading brings.
pub(crate) fn superblock_copies(
    source: &mut (impl Read + Seek),
    start: u64,
    size: u64,
) -> io::Result<Vec<Range<u64>>> {
    let mut superblock = [0; 92];
    if size < XFS_SUPERBLOCK {
        return Ok(Vec::new());
    }
    read_exact_at(source, start, &mut superblock)?;
    let number = |at: usize| {
        u64::from(u32::from_be_bytes([
            superblock[at],
            superblock[at + 1],
            superblock[at + 2],
            superblock[at + 3],
        ]))
    };
    let (block, blocks, count) = (number(4), number(84), number(88));
    let group = block * blocks;
    if !superblock.starts_with(b"XFSB") || group < LEAST_GROUP {
        return Ok(Vec::new());
    }
    let places = (1..count).map(|index| index * group).take_while(|place| *place + XFS_SUPERBLOCK <= size);
    Ok(places.map(|place| start + place..start + place + XFS_SUPERBLOCK).collect())
}
