//! Files of checksums.

#![no_main]

use farrier_imaging::checksum::find_in_file;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Some(digest) = find_in_file(text, "image.raw") {
        assert!(text.to_ascii_lowercase().contains(&digest), "{digest} came from nowhere");
    }
});
