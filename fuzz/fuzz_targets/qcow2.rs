//! qcow2 images, written from a source with ranges and from one without. What is on the disk is the same.

#![no_main]

use farrier_imaging::qcow2::in_memory::{Mode, expand};
use libfuzzer_sys::fuzz_target;

/// Bytes of the disk: few, so that many images are tried.
const DISK: usize = 256 << 10;
/// Bytes that tables may take: few, so that the limit is met.
const MEMORY: usize = 1 << 20;

fuzz_target!(|image: &[u8]| {
    let streamed = expand(image, Mode::Stream, DISK, MEMORY);
    let planned = expand(image, Mode::Ranges, DISK, MEMORY);
    if let (Ok(streamed), Ok(planned)) = (streamed, planned) {
        let size = virtual_size(image).expect("an image without a header was written");
        assert!(streamed[..size] == planned[..size], "the two ways to write it differ");
    }
});

/// As the header says, in bytes.
fn virtual_size(image: &[u8]) -> Option<usize> {
    let field = image.get(24..32)?.try_into().ok()?;
    usize::try_from(u64::from_be_bytes(field)).ok()
}
