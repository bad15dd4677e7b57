//! Why the crates `gpt` and `mbrman` do not read whole tables, nor change those that are there.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn with_header(change: impl FnOnce(&mut [u8])) -> MemoryDisk {
    let disk = MemoryDisk::zeros(DISK, 512);
    gpt_image(&disk, &new_gpt(&[(1, MIB, 2 * MIB), (2, 3 * MIB, 4 * MIB)]));
    let mut header = disk.content(512, 512);
    change(&mut header);
    let size = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
    header[16..20].fill(0);
    let crc = crc32(&header[..size as usize]);
    header[16..20].copy_from_slice(&crc.to_le_bytes());
    disk.put(512, &header);
    disk
}

/// What the crate makes of a disk; nothing when it panics.
fn read_by_gpt(disk: &MemoryDisk) -> Option<Result<usize, ::gpt::GptError>> {
    let open = || ::gpt::GptConfig::new().open_from_device(DiskView::whole(disk));
    let read = || open().map(|table| table.header().num_parts as usize);
    catch_unwind(AssertUnwindSafe(read)).ok()
}

#[test]
fn d13_gpt_panics_on_entries_of_another_size_and_takes_as_many_as_a_header_claims() {
    let disk = with_header(|header| header[84..88].copy_from_slice(&256_u32.to_le_bytes()));
    assert!(read_by_gpt(&disk).is_none());
    let error = PartitionTable::read(&disk).unwrap_err().to_string();
    assert!(error.contains("entries of 256 bytes"), "{error}");

    const MANY: u32 = 1 << 16;
    let disk = with_header(|header| {
        header[80..84].copy_from_slice(&MANY.to_le_bytes());
        let mut entries = vec![0; MANY as usize * 128];
        entries[..1 << 20].fill(0);
        header[88..92].copy_from_slice(&crc32(&entries).to_le_bytes());
    });
    disk.put(1024, &[0; 1024]);
    assert!(matches!(read_by_gpt(&disk), Some(Ok(65_536))));
    let error = PartitionTable::read(&disk).unwrap_err().to_string();
    assert!(error.contains("claims 65536 entries"), "{error}");
}

#[test]
fn gpt_refuses_headers_with_more_than_it_knows() {
    let disk = with_header(|header| header[12..16].copy_from_slice(&128_u32.to_le_bytes()));
    // Without a backup that it would take instead.
    disk.put(DISK - 512, &[0; 512]);
    assert!(matches!(read_by_gpt(&disk), Some(Err(_))));
    assert_eq!(PartitionTable::read(&disk).unwrap().partitions().len(), 2);
}

#[test]
fn d05_gpt_writes_partitions_one_after_the_other_whatever_their_numbers_are() {
    let disk = with_header(|_| {});
    renumber(&disk, 1, 15);
    let config = ::gpt::GptConfig::new().writable(true);
    let mut table = config.open_from_device(DiskView::whole(&disk)).unwrap();
    assert!(table.partitions().keys().eq(&[2, 15]));
    table.write_inplace().unwrap();
    assert_eq!(places(&PartitionTable::read(&disk).unwrap()), [(1, 3 * MIB, 4 * MIB), (2, MIB, 2 * MIB)]);
}

/// A disk with an MBR: its entries by sector and slot, each with type, start and length.
fn with_entries(entries: &[(u64, u64, u8, u32, u32)]) -> MemoryDisk {
    let disk = MemoryDisk::zeros(DISK, 512);
    for (sector, slot, type_id, start, length) in entries {
        let entry =
            [&[0, 0, 0, 0, *type_id, 0, 0, 0][..], &start.to_le_bytes(), &length.to_le_bytes()].concat();
        disk.put(sector * 512 + 446 + slot * 16, &entry);
        disk.put(sector * 512 + 510, &[0x55, 0xaa]);
    }
    disk
}

/// How many partitions the crate finds; nothing when it panics.
fn read_by_mbrman(disk: &MemoryDisk) -> Option<mbrman::Result<usize>> {
    let read = || mbrman::MBR::read_from(&mut DiskView::whole(disk), 512).map(|table| table.len());
    catch_unwind(AssertUnwindSafe(read)).ok()
}

#[test]
fn d13_mbrman_panics_on_a_start_of_zero_and_on_numbers_that_do_not_fit() {
    let disk = with_entries(&[(0, 0, 0x83, 0, 8)]);
    assert!(read_by_mbrman(&disk).is_none());
    assert!(PartitionTable::read(&disk).unwrap_err().to_string().contains("partition 1 lies outside"));

    let disk = with_entries(&[(0, 0, 0x05, 8, 50), (8, 0, 0x83, u32::MAX, 1)]);
    assert!(read_by_mbrman(&disk).is_none());
    assert!(PartitionTable::read(&disk).unwrap_err().to_string().contains("partition 5 lies outside"));
}

#[test]
fn mbrman_follows_a_chain_for_as_long_as_it_goes_on() {
    const LONG: u32 = 1000;
    let mut entries = vec![(0, 0, 0x05, 8, 10 * LONG)];
    for number in 0..LONG {
        let sector = u64::from(8 + 2 * number);
        entries.push((sector, 0, 0x83, 1, 1));
        entries.push((sector, 1, 0x05, 2 * (number + 1), 2));
    }
    let disk = with_entries(&entries);
    // The last one leads to a sector that is none of a table.
    disk.put(u64::from(8 + 2 * LONG) * 512 + 510, &[0x55, 0xaa]);
    assert!(matches!(read_by_mbrman(&disk), Some(Ok(found)) if found > LONG as usize));
    assert_eq!(PartitionTable::read(&disk).unwrap().partitions().len(), 256);
}

proptest! {
    #[test]
    fn d15_mbrman_writes_the_first_sector_as_it_was(
        bytes in proptest::collection::vec(any::<u8>(), 512..=512),
        flags in any::<[bool; 4]>(),
    ) {
        let mut bytes = bytes;
        for (slot, is_booted) in flags.into_iter().enumerate() {
            bytes[446 + 16 * slot] = if is_booted { 0x80 } else { 0 };
        }
        bytes[510..].copy_from_slice(&[0x55, 0xaa]);
        let header = mbrman::MBRHeader::read_from(&mut std::io::Cursor::new(&bytes)).unwrap();
        let mut written = std::io::Cursor::new(vec![0; 512]);
        header.write_into(&mut written).unwrap();
        prop_assert_eq!(written.into_inner(), bytes);
    }
}
