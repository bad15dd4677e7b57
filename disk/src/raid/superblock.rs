//! Superblocks of software RAID: which array a volume belongs to, whether that runs or not.

use crate::table::read_exact_at;
use std::io::{self, Read, Seek};

/// libblkid's name of a superblock in any format.
pub const SIGNATURE: &str = "linux_raid_member";

/// First bytes of a superblock of the format 1.x (Linux, `md_p.h`).
const MAGIC: [u8; 4] = 0xa92b_4efc_u32.to_le_bytes();
const MAJOR_VERSION: usize = 4;
const NAME: std::ops::Range<usize> = 32..64;

/// Name of the array that the volume in `source`, of `size` bytes, is a member of; assembled or not.
///
/// Formats 1.0, 1.1 and 1.2 keep their superblock at the end, at the start and 4 KiB behind it; older
/// ones know no names.
///
/// # Errors
///
/// Whatever reading brings.
pub fn array_name(source: &mut (impl Read + Seek), size: u64) -> io::Result<Option<String>> {
    let mut places = vec![0, 4096];
    places.extend(size.checked_sub(8192).map(|place| place - place % 4096));
    for place in places {
        let mut superblock = [0; NAME.end];
        if place + superblock.len() as u64 > size {
            continue;
        }
        read_exact_at(source, place, &mut superblock)?;
        if superblock.starts_with(&MAGIC) && superblock[MAJOR_VERSION] == 1 {
            let name = String::from_utf8_lossy(&superblock[NAME]);
            return Ok(Some(name.trim_end_matches('\0').to_owned()));
        }
    }
    Ok(None)
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

    #[test]
    fn d02_members_are_told_in_every_format_with_a_name() {
        const SIZE: usize = 100_000;
        for place in [0, 4096, 90_112] {
            let mut volume = vec![0; SIZE];
            volume[place..place + 4].copy_from_slice(&MAGIC);
            volume[place + 4] = 1;
            volume[place + 32..place + 41].copy_from_slice(b"host:data");
            let mut volume = Cursor::new(volume);
            assert_eq!(
                array_name(&mut volume, SIZE as u64).unwrap().as_deref(),
                Some("host:data"),
                "{place}"
            );
        }
        for size in [0, 63, 64, 5000, SIZE] {
            assert_eq!(array_name(&mut Cursor::new(vec![0; size]), size as u64).unwrap(), None);
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
            let found = array_name(&mut Cursor::new(volume), 4096).unwrap();
            assert_eq!(found.as_deref(), Some(name));
            assert!(is_named(name, name) && !is_named(name, "data"), "{name}");
        }
        let mut broken = vec![0; 4096];
        broken[..4].copy_from_slice(&MAGIC);
        broken[MAJOR_VERSION] = 1;
        broken[NAME].fill(0xff);
        assert!(array_name(&mut Cursor::new(broken), 4096).unwrap().is_some(), "no text, and no error");
    }
}
