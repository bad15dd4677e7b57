//! qcow2 images, written from a source with ranges and from one without. Both write the same disk.

#![no_main]

use farrier_imaging::qcow2::in_memory::{Mode, expand};
use libfuzzer_sys::fuzz_target;

/// Bytes of the disk: room for the spool behind what small images describe.
const DISK: u64 = 16 << 20;
/// Bytes that tables may take: few, so that the limit is met.
const MEMORY: usize = 1 << 20;

fuzz_target!(|image: &[u8]| {
    let streamed = expand(image, Mode::Stream, DISK, MEMORY);
    let planned = expand(image, Mode::Ranges, DISK, MEMORY);
    if let (Ok(streamed), Ok(planned)) = (streamed, planned) {
        let size = planned.virtual_size;
        assert!(streamed.disk.begins_like(&planned.disk, size), "the two ways to write it differ");
    }
});
