//! Everything that any copy of a partition table names. The first byte chooses the sector size.

#![no_main]

use farrier_disk::map::{Tables, places};
use farrier_disk::table::{Geometry, Partition};
use farrier_fuzz::SECTOR_SIZES;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, disk)) = bytes.split_first() else { return };
    let sector_size = SECTOR_SIZES[usize::from(first & 1)];
    let unit = u64::from(sector_size);
    let geometry = Geometry { size: disk.len() as u64 / unit * unit, sector_size };
    let tables = Tables::parse(&mut Cursor::new(disk), geometry).expect("memory is readable");
    for volume in tables.volumes() {
        let end = volume.start.checked_add(volume.size).expect("a volume has an end");
        assert!(volume.size > 0 && end <= geometry.size, "{volume:?} lies outside the disk");
        for place in places(volume.start, volume.size) {
            assert!(place.start >= volume.start && place.end <= end, "{place:?} lies outside of {volume:?}");
        }
    }
    assert!(tables.areas().iter().all(|area| area.end <= geometry.size));
    if let Ok(live) = tables.live(Path::new("/dev/memory")) {
        let is_named = |one: &Partition| {
            tables.named().iter().any(|other| (other.start, other.size) == (one.start, one.size))
        };
        assert!(live.partitions().iter().filter(|one| one.size > 0).all(is_named));
    }
});
