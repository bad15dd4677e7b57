//! Disks that lose their metadata, whatever table they had. The first byte chooses the sector size.

#![no_main]

use farrier_disk::{Error, Sectors};
use farrier_disk::io::zero::is_zero;
use farrier_disk::table::PartitionTable;
use farrier_disk::wipe;
use farrier_fuzz::{SECTOR_SIZES, memory_disk};
use libfuzzer_sys::fuzz_target;

/// Bytes of the disk, and those at either end that are looked at afterwards.
const DISK: u64 = 24 << 20;
const ENDS: usize = 64 << 10;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, content)) = bytes.split_first() else { return };
    let disk = memory_disk(&[(0, content), (DISK - 4096, content)], DISK, SECTOR_SIZES[usize::from(choice & 1)]);
    let partitions = PartitionTable::read(&disk).map(|table| table.partitions().to_vec()).unwrap_or_default();
    // An MBR may have partitions of no size.
    let filled = partitions.iter().filter(|one| one.size > 0);
    let places: Vec<_> = filled.flat_map(|one| [one.start, one.start + one.size - 512]).collect();
    places.iter().for_each(|place| disk.put(*place, b"signature"));
    match wipe::erase_metadata(&disk) {
        // More partitions than are looked at.
        Err(Error::InvalidTable { .. }) => return,
        outcome => outcome.expect("memory is writable"),
    }
    for place in [0, DISK - ENDS as u64] {
        assert!(is_zero(&disk.content(place, ENDS)), "something is left at {place}");
    }
    for place in places {
        assert_ne!(&disk.content(place, 9), b"signature", "a signature is left at {place}");
    }
    assert_eq!(PartitionTable::read(&disk).expect("zeros are readable").name(), "none");
    wipe::wipe_ends(&disk).expect("memory is writable");
    disk.flush().expect("memory is writable");
});
