//! Compressed images: gzip, Zstandard, xz and bzip2.

#![no_main]

use farrier_imaging::in_memory::unpack;
use libfuzzer_sys::fuzz_target;

/// Bytes that are unpacked at most.
const LIMIT: u64 = 1 << 20;

fuzz_target!(|packed: &[u8]| {
    if let Some(Ok(content)) = unpack(packed, LIMIT) {
        assert!(content.len() as u64 <= LIMIT);
    }
});
