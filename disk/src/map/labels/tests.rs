//! Labels as their systems write them, on a disk and in a partition of an MBR.

use crate::io::MemoryDisk;
use crate::map::tests::put_entry;
use crate::map::{DiskMap, Tables};
use crate::table::Partition;
use crate::wipe::erase_metadata;

const MIB: u64 = 1 << 20;
const DISK: u64 = 96 * MIB;
/// In sectors: where the partition of a label begins, and its length.
const PLACE: (u32, u32) = (0x10000, 0x8000);
const START: u64 = 32 * MIB;
const SIZE: u64 = 16 * MIB;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// The first KiB with a label of BSD, whose partition begins at this sector.
fn bsd(at: usize, start: u32) -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    for mark in [0, 132] {
        put(&mut bytes, at + mark, &0x8256_4557_u32.to_le_bytes());
    }
    put(&mut bytes, at + 138, &2_u16.to_le_bytes());
    put(&mut bytes, at + 148, &PLACE.1.to_le_bytes());
    put(&mut bytes, at + 152, &start.to_le_bytes());
    bytes
}

fn solaris() -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    put(&mut bytes, 512 + 12, &0x600d_deee_u32.to_le_bytes());
    put(&mut bytes, 512 + 76, &PLACE.0.to_le_bytes());
    put(&mut bytes, 512 + 80, &PLACE.1.to_le_bytes());
    bytes
}

fn sun() -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    // 16 heads of 64 sectors.
    put(&mut bytes, 436, &16_u16.to_be_bytes());
    put(&mut bytes, 438, &64_u16.to_be_bytes());
    put(&mut bytes, 452, &(PLACE.0 / 1024).to_be_bytes());
    put(&mut bytes, 456, &PLACE.1.to_be_bytes());
    put(&mut bytes, 508, &[0xda, 0xbe]);
    let sum = bytes[..510].chunks(2).fold(0, |sum, word| sum ^ u16::from_be_bytes([word[0], word[1]]));
    put(&mut bytes, 510, &sum.to_be_bytes());
    bytes
}

fn sgi() -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    put(&mut bytes, 0, &0x0be5_a941_u32.to_be_bytes());
    put(&mut bytes, 324, &PLACE.1.to_be_bytes());
    put(&mut bytes, 328, &PLACE.0.to_be_bytes());
    bytes
}

fn apple() -> Vec<u8> {
    let mut bytes = vec![0; 2048];
    put(&mut bytes, 0, b"ER\x02\0");
    for (block, start, length) in [(1, 1_u32, 63_u32), (2, PLACE.0, PLACE.1)] {
        put(&mut bytes, block * 512, b"PM");
        for (at, number) in [(4, 2), (8, start), (12, length)] {
            put(&mut bytes, block * 512 + at, &number.to_be_bytes());
        }
    }
    bytes
}

/// A swap area, which libblkid recognises wherever a page ends with it.
fn swap() -> Vec<u8> {
    let mut page = vec![0; 4096];
    put(&mut page, 1024, &[1]);
    put(&mut page, 1028, &1000_u32.to_le_bytes());
    put(&mut page, 4086, b"SWAPSPACE2");
    page
}

#[test]
fn a02_what_labels_of_other_systems_name_is_found_and_goes_with_the_disk() {
    for (name, label) in [
        ("BSD", bsd(512, PLACE.0)),
        ("BSD on Alpha", bsd(64, PLACE.0)),
        ("Solaris", solaris()),
        ("Sun", sun()),
        ("SGI", sgi()),
        ("Apple", apple()),
    ] {
        for sector_size in [512, 4096] {
            let disk = MemoryDisk::zeros(DISK, sector_size);
            disk.put(0, &label);
            disk.put(START, &swap());
            let map = DiskMap::read(&disk).unwrap();
            let is_it = |one: &Partition| (one.start, one.size) == (START, SIZE);
            assert!(map.tables().named().iter().any(is_it), "{name}: {:?}", map.tables().named());
            assert!(map.contents().iter().any(|content| content.kind == "swap"), "{name}");
            assert!(map.occupant().is_some(), "{name}: the disk is not free");
            assert!(map.live().unwrap().partitions().is_empty(), "{name}");
            erase_metadata(&disk).unwrap();
            assert!(disk.content(START, 4096).iter().all(|byte| *byte == 0), "{name} on {sector_size}");
            assert!(disk.content(0, 4096).iter().all(|byte| *byte == 0), "{name} on {sector_size}");
        }
    }
}

#[test]
fn a02_labels_in_partitions_count_from_there_or_from_the_beginning_of_the_disk() {
    let slice = 8 * MIB;
    for (name, label, start) in [
        ("from the partition", bsd(512, PLACE.0), slice + START),
        ("from the disk", bsd(512, PLACE.0), START),
        ("Solaris", solaris(), slice + START),
    ] {
        let disk = MemoryDisk::zeros(DISK, 512);
        put_entry(&disk, 0, (0, 0xa5, (slice / 512) as u32, (80 * MIB / 512) as u32));
        disk.put(slice, &label);
        disk.put(start, &swap());
        let tables = Tables::read(&disk).unwrap();
        assert!(tables.volumes().iter().any(|one| (one.start, one.size) == (start, SIZE)), "{name}");
        erase_metadata(&disk).unwrap();
        assert!(disk.content(start, 4096).iter().all(|byte| *byte == 0), "{name}");
    }
}

#[test]
fn labels_that_are_damaged_or_lead_nowhere_name_nothing() {
    let mut broken_sun = sun();
    broken_sun[511] ^= 1;
    let far = bsd(512, u32::MAX);
    let whole = {
        let mut label = bsd(512, 0);
        put(&mut label, 512 + 148, &((DISK / 512) as u32).to_le_bytes());
        label
    };
    for label in [broken_sun, far, whole, b"ER\0\0".to_vec(), b"ER\x02\0".to_vec()] {
        let disk = MemoryDisk::zeros(DISK, 512);
        disk.put(0, &label);
        assert_eq!(Tables::read(&disk).unwrap().named(), []);
    }
    for size in [512, 1000, 1024] {
        let disk = MemoryDisk::zeros(size / 512 * 512, 512);
        assert_eq!(Tables::read(&disk).unwrap().named(), []);
    }
}
