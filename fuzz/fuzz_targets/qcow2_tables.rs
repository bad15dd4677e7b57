//! The header and the tables of qcow2 images, as they are judged before anything is written.

#![no_main]

use farrier_imaging::qcow2::in_memory::judge;
use libfuzzer_sys::fuzz_target;

/// Bytes of the disk: more than small images describe.
const DISK: u64 = 1 << 40;
/// Bytes that tables may take: few, so that the limit is met.
const MEMORY: usize = 1 << 20;

fuzz_target!(|image: &[u8]| {
    if let Ok(size) = judge(image, DISK, MEMORY) {
        assert!(size <= DISK, "{size} bytes do not fit");
    }
});
