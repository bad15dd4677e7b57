//! Superblocks of software RAID.

#![no_main]

use farrier_disk::md::superblock::{Superblock, is_named};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(|volume: &[u8]| {
    let size = volume.len() as u64;
    if let Ok(Some(found)) = Superblock::find(&mut Cursor::new(volume), 0, size) {
        assert!(is_named(&found.name, &found.name), "{found:?}");
    }
});
