//! What the RAID of firmware and host adapters leaves at the ends of disks: the fields by which mdadm and libblkid
//! know it, and no volumes.

use super::{bytes_at, sum_of_words};
use crate::content::Content;

/// Intel's matrix storage (mdadm's `super-intel.c`): the anchor in the last sector but one.
pub fn imsm(size: u64, sector: u32) -> Content {
    const LENGTH: usize = 264;
    let mut block = vec![0; 512];
    block[..30].copy_from_slice(b"Intel Raid ISM Cfg Sig. 1.3.00");
    for (offset, value) in [(36, LENGTH as u32), (40, 0x5a11_bacc), (44, 1), (52, 1)] {
        block[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    }
    block[56] = 1;
    block[216..222].copy_from_slice(b"FOAL01");
    block[232..236].copy_from_slice(&((size / 512) as u32).to_le_bytes());
    block[240..244].copy_from_slice(&0x3a_u32.to_le_bytes());
    let sum = sum_of_words(&block[..LENGTH]) as u32;
    block[32..36].copy_from_slice(&sum.to_le_bytes());
    bytes_at(size - 2 * u64::from(sector), &block)
}

/// SNIA's common format: the anchor in the last 512 bytes leads to two more headers before it.
pub fn ddf(size: u64, _: u32) -> Content {
    let anchor = size / 512 - 1;
    let (primary, secondary) = (anchor - 64, anchor - 128);
    let mut header = vec![0xff; 512];
    header[..4].copy_from_slice(&0xde11_de11_u32.to_be_bytes());
    header[8..32].copy_from_slice(b"FARRIER 0123456789ABCDEF");
    header[32..40].copy_from_slice(b"01.02.00");
    header[40..44].copy_from_slice(&1_u32.to_be_bytes());
    header[96..104].copy_from_slice(&primary.to_be_bytes());
    header[104..112].copy_from_slice(&secondary.to_be_bytes());
    // One disk and no volume: each section as long as the smallest tables need.
    header[112..116].fill(0);
    for (offset, value) in [(128, 15_u16), (130, 15), (132, 1), (134, 1), (136, 16)] {
        header[offset..offset + 2].copy_from_slice(&value.to_be_bytes());
    }
    let sections = [(1, 1), (2, 2), (4, 2), (6, 2), (8, 1), (u32::MAX, 0), (u32::MAX, 0), (u32::MAX, 0)];
    for (number, (offset, length)) in sections.into_iter().enumerate() {
        let place = 192 + number * 8;
        header[place..place + 4].copy_from_slice(&u32::to_be_bytes(offset));
        header[place + 4..place + 8].copy_from_slice(&u32::to_be_bytes(length));
    }
    let mut content = Content::default();
    for (place, kind) in [(anchor, 0), (primary, 1), (secondary, 2)] {
        header[112] = kind;
        header[4..8].fill(0xff);
        let crc = plain_crc32(&header);
        header[4..8].copy_from_slice(&crc.to_be_bytes());
        content.put(place * 512, &header);
    }
    content
}

/// LSI's MegaRAID: the last 512 bytes.
pub fn lsi(size: u64, _: u32) -> Content {
    bytes_at(size - 512, b"$XIDE$\x01\x02\x03")
}

/// NVIDIA's MediaShield: the last 512 bytes but as many.
pub fn nvidia(size: u64, _: u32) -> Content {
    bytes_at(size - 1024, b"NVIDIA  \x1e\0\0\0\0\0\0\0\x64\0")
}

/// JMicron's: the last 512 bytes.
pub fn jmicron(size: u64, _: u32) -> Content {
    bytes_at(size - 512, b"JM\x01\x02\0\0")
}

/// Adaptec's host RAID: the last 512 bytes.
pub fn adaptec(size: u64, _: u32) -> Content {
    let mut block = vec![0; 512];
    block[..4].copy_from_slice(&0x37fc_4d1e_u32.to_be_bytes());
    block[256..260].copy_from_slice(b"DPTM");
    bytes_at(size - 512, &block)
}

/// Promise's FastTrak: 63 times 512 bytes before the end.
pub fn promise(size: u64, _: u32) -> Content {
    bytes_at(size - 63 * 512, b"Promise Technology, Inc.")
}

/// Silicon Image's: the last 512 bytes.
pub fn silicon(size: u64, _: u32) -> Content {
    let mut block = vec![0; 512];
    block[0x60..0x64].copy_from_slice(&0x2f00_0000_u32.to_le_bytes());
    block[0x10a..0x10c].copy_from_slice(&2_u16.to_le_bytes());
    let half = |pair: &[u8]| u16::from_le_bytes([pair[0], pair[1]]);
    let sum = block[..0x13e].chunks(2).fold(0, |sum: u16, pair| sum.wrapping_add(half(pair)));
    block[0x13e..0x140].copy_from_slice(&0_u16.wrapping_sub(sum).to_le_bytes());
    bytes_at(size - 512, &block)
}

/// VIA's: the last 512 bytes.
pub fn via(size: u64, _: u32) -> Content {
    let mut block = vec![0; 512];
    block[..5].copy_from_slice(&[0x55, 0xaa, 1, 3, 0]);
    block[50] = block[..50].iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte));
    bytes_at(size - 512, &block)
}

/// HighPoint's of the second kind: eleven times 512 bytes before the end.
pub fn highpoint_45x(size: u64, _: u32) -> Content {
    bytes_at(size - 11 * 512, &0x5a78_16f3_u32.to_le_bytes())
}

/// HighPoint's of the first kind: at the start.
pub fn highpoint_37x(_: u64, _: u32) -> Content {
    bytes_at(4608 + 32, &0x5a78_16f0_u32.to_le_bytes())
}

/// The polynomial of IEEE 802.3, with nothing turned around before or after, as mdadm has it.
fn plain_crc32(bytes: &[u8]) -> u32 {
    let shift = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    bytes.iter().fold(0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), shift))
}
