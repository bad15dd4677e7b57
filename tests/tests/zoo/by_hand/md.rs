//! Superblocks of Linux software RAID (`md_p.h`): a mirror of which the other half is gone.

use super::{bytes_at, sum_of_words};
use crate::content::Content;

const MAGIC: u32 = 0xa92b_4efc;
/// Unit of sizes and offsets, in bytes.
const SECTOR: u64 = 512;
/// Room for data before the superblock of 1.0, behind that of 1.1 and 1.2, in sectors.
const DATA: u64 = 2048;
const UUID: [u8; 16] = *b"\x5a\x11\xba\xcc\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b";

/// The name in the formats that have one, behind the host that gave it.
const NAME: &[u8] = b"stable:data";

fn put32(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
}

fn put64(bytes: &mut [u8], offset: usize, value: u64) {
    bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
}

/// Format 0.90: 4 KiB at the last but one 64 KiB.
pub fn version_0_90(size: u64, _: u32) -> Content {
    let mut block = vec![0; 4096];
    let place = (size & !0xffff) - 0x1_0000;
    let uuid: Vec<u32> =
        UUID.chunks(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect();
    for (word, value) in [
        (0, MAGIC),
        (2, 90),
        (5, uuid[0]),
        (7, 1),
        (8, (place / 1024) as u32),
        (9, 2),
        (10, 2),
        (13, uuid[1]),
        (14, uuid[2]),
        (15, uuid[3]),
        (33, 1),
        (34, 1),
        (35, 1),
    ] {
        put32(&mut block, word * 4, value);
    }
    // The descriptor of this disk, which is number 0, active and in sync, and the same once more for "this disk".
    for word in [128, 992] {
        put32(&mut block, (word + 4) * 4, 6);
    }
    let sum = folded(sum_of_words(&block));
    put32(&mut block, 38 * 4, sum);
    bytes_at(place, &block)
}

/// Format 1.0: at the end.
pub fn version_1_0(size: u64, _: u32) -> Content {
    let place = (size / SECTOR - 16) & !7;
    version_1(place * SECTOR, 0, place)
}

/// Format 1.1: at the start.
pub fn version_1_1(size: u64, _: u32) -> Content {
    version_1(0, DATA, size / SECTOR - DATA)
}

/// Format 1.2: 4 KiB behind the start.
pub fn version_1_2(size: u64, _: u32) -> Content {
    version_1(4096, DATA, size / SECTOR - DATA)
}

/// The same, of another array with another name.
pub fn other(size: u64, _: u32) -> Content {
    named(b"stable:other", 0x77, 4096, DATA, size / SECTOR - DATA)
}

fn version_1(place: u64, data: u64, data_size: u64) -> Content {
    named(NAME, 0x5a, place, data, data_size)
}

fn named(name: &[u8], identity: u8, place: u64, data: u64, data_size: u64) -> Content {
    let mut block = vec![0; 512];
    put32(&mut block, 0, MAGIC);
    put32(&mut block, 4, 1);
    block[16..32].copy_from_slice(&UUID);
    block[16] = identity;
    block[32..32 + name.len()].copy_from_slice(name);
    put64(&mut block, 64, 1_700_000_000);
    put32(&mut block, 72, 1);
    put64(&mut block, 80, data_size);
    put32(&mut block, 92, 2);
    put64(&mut block, 128, data);
    put64(&mut block, 136, data_size);
    put64(&mut block, 144, place / SECTOR);
    block[168..184].copy_from_slice(&UUID);
    put64(&mut block, 192, 1_700_000_000);
    put64(&mut block, 200, 1);
    put64(&mut block, 208, u64::MAX);
    let devices: usize = 2;
    put32(&mut block, 220, devices as u32);
    // Roles: this one is the first half, the other is missing.
    block[256..258].copy_from_slice(&0_u16.to_le_bytes());
    block[258..260].copy_from_slice(&0xfffe_u16.to_le_bytes());
    let sum = folded(sum_of_words(&block[..256 + 2 * devices]));
    put32(&mut block, 216, sum);
    bytes_at(place, &block)
}

/// What overflows 32 bits is added below.
fn folded(sum: u64) -> u32 {
    (sum as u32).wrapping_add((sum >> 32) as u32)
}
