//! Superblocks of software RAID: which array a volume belongs to, whether that runs or not.

use crate::table::read_exact_at;
use std::io::{self, Read, Seek};
use std::ops::Range;

/// libblkid's name of a superblock in any format.
pub const SIGNATURE: &str = "linux_raid_member";

/// First bytes of a superblock of the format 1.x (Linux, `md_p.h`).
const MAGIC: [u8; 4] = 0xa92b_4efc_u32.to_le_bytes();
const MAJOR_VERSION: usize = 4;
const FEATURES: Range<usize> = 8..12;
const ARRAY: Range<usize> = 16..32;
const NAME: Range<usize> = 32..64;
const BITMAP: Range<usize> = 96..100;
const DATA_SECTOR: Range<usize> = 128..136;
/// Unit in which superblocks count, in bytes, whatever the sector size of the device.
const SECTOR: u64 = 512;

/// What a member says of its array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// Identity of the array.
    pub array: [u8; 16],
    /// Name of the array.
    pub name: String,
    /// Where in the member, in bytes, lies what the array keeps there.
    pub data: u64,
    /// Where in the member, in bytes, it lies itself.
    pub place: u64,
    /// What more the array has, as the bits of Linux' `md_p.h`.
    pub features: u32,
    /// Sectors of 512 bytes from the superblock to the bitmap, where the features have one.
    pub bitmap: i32,
}

impl Superblock {
    /// Finds the superblock in `size` bytes from `start` of `source`; whether the array runs does not matter.
    ///
    /// Formats 1.0, 1.1 and 1.2 keep it at the end, at the start and 4 KiB behind that; older ones, which
    /// know no names, are not found.
    ///
    /// # Errors
    ///
    /// Whatever reading brings.
    pub fn find(source: &mut (impl Read + Seek), start: u64, size: u64) -> io::Result<Option<Self>> {
        let mut places = vec![0, 4096];
        places.extend(size.checked_sub(8192).map(|place| place - place % 4096));
        for place in places {
            let mut content = [0; DATA_SECTOR.end];
            if place + content.len() as u64 > size {
                continue;
            }
            read_exact_at(source, start + place, &mut content)?;
            if content.starts_with(&MAGIC) && content[MAJOR_VERSION] == 1 {
                return Ok(Some(Self::parse(&content, place)));
            }
        }
        Ok(None)
    }

    fn parse(content: &[u8; DATA_SECTOR.end], place: u64) -> Self {
        let (mut array, mut sector) = ([0; ARRAY.end - ARRAY.start], [0; 8]);
        let (mut features, mut bitmap) = ([0; 4], [0; 4]);
        features.copy_from_slice(&content[FEATURES]);
        bitmap.copy_from_slice(&content[BITMAP]);
        array.copy_from_slice(&content[ARRAY]);
        sector.copy_from_slice(&content[DATA_SECTOR]);
        let name = String::from_utf8_lossy(&content[NAME]);
        Self {
            array,
            name: name.trim_end_matches('\0').to_owned(),
            data: u64::from_le_bytes(sector).saturating_mul(SECTOR),
            place,
            features: u32::from_le_bytes(features),
            bitmap: i32::from_le_bytes(bitmap),
        }
    }
}

/// Whether `name`, as a superblock has it, is what an operator calls `wanted`: mdadm puts the name of
/// the host that made the array before it.
pub fn is_named(name: &str, wanted: &str) -> bool {
    name == wanted || name.split_once(':').is_some_and(|(_host, name)| name == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn find(volume: &[u8]) -> Option<Superblock> {
        Superblock::find(&mut Cursor::new(volume), 0, volume.len() as u64).unwrap()
    }

    #[test]
    fn d02_members_are_told_in_every_format_with_a_name() {
        const SIZE: usize = 100_000;
        for place in [0, 4096, 90_112] {
            let mut volume = vec![0; SIZE];
            volume[place..place + 4].copy_from_slice(&MAGIC);
            volume[place + 4] = 1;
            volume[place + 16] = 7;
            volume[place + 32..place + 41].copy_from_slice(b"host:data");
            volume[place + 128] = 9;
            volume[place + 8] = 3;
            volume[place + 96..place + 100].copy_from_slice(&(-8_i32).to_le_bytes());
            let expected = Superblock {
                array: std::array::from_fn(|byte| if byte == 0 { 7 } else { 0 }),
                name: "host:data".to_owned(),
                data: 9 * 512,
                place: place as u64,
                features: 3,
                bitmap: -8,
            };
            assert_eq!(find(&volume).as_ref(), Some(&expected), "{place}");
            let behind = [vec![0xff; 700], volume].concat();
            let found = Superblock::find(&mut Cursor::new(behind), 700, SIZE as u64).unwrap();
            assert_eq!(found, Some(expected), "{place}");
        }
        for size in [0, 135, 136, 5000, SIZE] {
            assert_eq!(find(&vec![0; size]), None);
        }
    }

    #[test]
    fn d02_the_name_of_the_host_does_not_matter() {
        for (name, wanted, expected) in [
            ("data", "data", true),
            ("host:data", "data", true),
            ("host:data", "host:data", true),
            ("host:data", "host", false),
            ("database", "data", false),
        ] {
            assert_eq!(is_named(name, wanted), expected, "{name} {wanted}");
        }
    }

    #[test]
    fn f30_a_name_is_taken_as_its_bytes_are_whatever_they_are() {
        for name in ["md 0 = x", "UUID=1:2\nDEVICE /dev/sda", "/dev/md0", "a\u{e9}", &"x".repeat(32)] {
            let mut volume = vec![0; 4096];
            volume[..4].copy_from_slice(&MAGIC);
            volume[MAJOR_VERSION] = 1;
            volume[NAME][..name.len()].copy_from_slice(name.as_bytes());
            assert_eq!(find(&volume).unwrap().name, name);
            assert!(is_named(name, name) && !is_named(name, "data"), "{name}");
        }
        let mut broken = vec![0; 4096];
        broken[..4].copy_from_slice(&MAGIC);
        broken[MAJOR_VERSION] = 1;
        broken[NAME].fill(0xff);
        assert!(find(&broken).is_some(), "no text, and no error");
    }
}
