//! Partition tables that are finished, and get a partition more. The first byte chooses sector size and drive.

#![no_main]

use farrier_disk::config_drive::{ConfigDrive, MAX_SIZE};
use farrier_disk::table::{self, PartitionTable};
use farrier_fuzz::{SECTOR_SIZES, memory_disk};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

/// Bytes of the disk: room for an image and the partition behind it.
const DISK: u64 = MAX_SIZE + (16 << 20);

static DRIVE: LazyLock<ConfigDrive> = LazyLock::new(|| {
    let packed = include_bytes!("../seeds/config_drive/iso.gz");
    ConfigDrive::from_download(packed[1..].to_vec(), MAX_SIZE).expect("a seed that is a config drive")
});

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, image)) = bytes.split_first() else { return };
    let disk = memory_disk(&[(0, image)], DISK, SECTOR_SIZES[usize::from(choice & 1)]);
    let Ok(before) = table::finish_image(&disk) else { return };
    let Ok(added) = DRIVE.write_to(&disk) else { return };
    let after = PartitionTable::read(&disk).expect("a table that was written is read");
    for partition in before.partitions() {
        let same = after.partitions().iter().find(|other| other.number == partition.number);
        assert_eq!(same, Some(partition), "a partition of the image's was changed");
        let is_apart =
            added.start >= partition.start + partition.size || partition.start >= added.start + added.size;
        // An image may bring the partition for the drive, which may lie in an extended one.
        assert!(
            is_apart || added.number == partition.number || is_extended(partition),
            "{added:?} over {partition:?}"
        );
    }
    assert!(after.partitions().contains(&added), "{added:?} is missing");
});

fn is_extended(partition: &table::Partition) -> bool {
    matches!(partition.kind, table::PartitionKind::Mbr { type_id: 0x05 | 0x0f | 0x85, .. })
}
