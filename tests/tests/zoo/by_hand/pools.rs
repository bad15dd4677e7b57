//! Pools and clustered volumes.

use super::bytes_at;
use crate::content::Content;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Bytes of a label of ZFS.
const LABEL: u64 = 256 << 10;

/// Where BlueStore has kept its label since Ceph 19.2, as far as the volume reaches.
pub const BLUESTORE: [u64; 5] = [0, GIB, 10 * GIB, 100 * GIB, 1000 * GIB];
/// How it begins.
pub const BLUESTORE_MAGIC: &[u8] = b"bluestore block device\n";
/// How an uberblock begins.
pub const UBERBLOCK: [u8; 8] = 0x00ba_b10c_u64.to_le_bytes();

/// Labels of a BlueStore.
pub fn bluestore(size: u64, _: u32) -> Content {
    let mut content = Content::default();
    for place in BLUESTORE.into_iter().filter(|place| place + 4096 <= size) {
        let uuid = b"5a11bacc-0001-4203-8405-060708090a0b\n";
        content.put(place, &[BLUESTORE_MAGIC, uuid].concat());
    }
    content
}

/// The four labels of a vdev of ZFS: a list of names and values, and a ring of uberblocks.
pub fn zfs(size: u64, _: u32) -> Content {
    let mut content = Content::default();
    for label in zfs_labels(size) {
        // XDR: a version, and the pair of name and pool.
        content.put(label + (16 << 10), b"\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\0\0\x20\0\0\0\x20\0\0\0\x04name\0\0\0\x09\0\0\0\x01\0\0\0\x05stall\0\0\0");
        for number in 0..8_u64 {
            let mut block = vec![0; 40];
            block[..8].copy_from_slice(&UBERBLOCK);
            block[8..16].copy_from_slice(&5000_u64.to_le_bytes());
            block[16..24].copy_from_slice(&(4 + number).to_le_bytes());
            content.put(label + (128 << 10) + number * 1024, &block);
        }
    }
    content
}

/// Where the labels lie.
pub fn zfs_labels(size: u64) -> [u64; 4] {
    let end = size - size % LABEL;
    [0, LABEL, end - 2 * LABEL, end - LABEL]
}

/// VMware's: the record of the member, and the file system on it.
pub fn vmfs(_: u64, _: u32) -> Content {
    let mut content = bytes_at(MIB, &0xc001_d00d_u32.to_le_bytes());
    content.put(2 * MIB, &0x2fab_f15e_u32.to_le_bytes());
    content
}

/// HFS+: the volume header behind the boot blocks and its copy before the end, over a catalogue of nothing.
pub fn hfs_plus(size: u64, _: u32) -> Content {
    let mut header = vec![0; 512];
    header[..2].copy_from_slice(b"H+");
    header[2..4].copy_from_slice(&4_u16.to_be_bytes());
    header[40..44].copy_from_slice(&4096_u32.to_be_bytes());
    header[44..48].copy_from_slice(&((size / 4096) as u32).to_be_bytes());
    let mut content = bytes_at(1024, &header);
    content.put(size - 1024, &header);
    content
}
