//! Config drives as text and as servers send them, with all their files; some are put on a disk.
//!
//! The first byte tells for which disk they are read, and whether they are put on it. It also tells whether the
//! input is the beginning of a volume that is larger than inputs are and has zeros to its end.

#![no_main]

use farrier_disk::config_drive::{ConfigDrive, MAX_SIZE};
use farrier_disk::Sectors;
use farrier_fuzz::{SECTOR_SIZES, memory_disk};
use libfuzzer_sys::fuzz_target;

/// Bytes of the disk: room for the partition that is made for a drive.
const DISK: u64 = MAX_SIZE + (16 << 20);

/// Bits of the first byte that have a drive written.
const WRITTEN: u8 = 0b1100_1100;

/// The bit of the first byte that has zeros follow the input, and to how many bytes: a FAT16 volume's.
const LARGER: u8 = 0b1_0000;
const VOLUME: usize = 2_252_800;

/// The bit of the first byte that has the input come as conductors send it, and not as servers do.
const TEXT: u8 = 0b10_0000;

/// Bytes of a drive at most: inputs of some KiB could unpack to a thousand times as much.
const LIMIT: u64 = VOLUME as u64;

/// The first sector of a disk with an MBR of one partition, which the image brought.
const IMAGE: &[u8; 512] = include_bytes!("../seeds/mbr.sector");

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let Some(drive) = read(bytes, *choice) else { return };
    let drive = drive.always_rebuilt(choice & 2 != 0);
    let disk = memory_disk(&[(0, IMAGE)], DISK, SECTOR_SIZES[usize::from(choice & 1)]);
    let is_fitting = drive.require_fits(&disk).is_ok();
    // Making a file system takes its time, and many inputs are to be read.
    if choice & WRITTEN != WRITTEN {
        return;
    }
    if let Ok(partition) = drive.write_to(&disk) {
        assert!(is_fitting, "a drive was written that does not fit");
        let end = partition.start.checked_add(partition.size).expect("a partition in a disk");
        assert!(end <= disk.size(), "{partition:?} is behind the end");
        disk.signatures(0, disk.size()).expect("the disk is still readable");
    }
});

fn read(bytes: &[u8], choice: u8) -> Option<ConfigDrive> {
    if choice & TEXT != 0 {
        return ConfigDrive::decode(std::str::from_utf8(bytes).ok()?, LIMIT).ok();
    }
    if choice & LARGER != 0 {
        let mut volume = vec![0; VOLUME.max(bytes.len())];
        volume[..bytes.len()].copy_from_slice(bytes);
        return ConfigDrive::from_download(volume, LIMIT).ok();
    }
    ConfigDrive::from_download(bytes.to_vec(), LIMIT).ok()
}
