//! Physical volumes of LVM2, and whether machines share their groups.

#![no_main]

use farrier_disk::probe::lvm::PhysicalVolume;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(|volume: &[u8]| {
    let size = volume.len() as u64;
    let found = PhysicalVolume::find(&mut Cursor::new(volume), 0, size).expect("memory is readable");
    // What lies behind the end of the volume is not asked for.
    let behind = [volume, &[0xff; 4096]].concat();
    let again = PhysicalVolume::find(&mut Cursor::new(behind), 0, size).expect("memory is readable");
    assert_eq!(found, again);
});
