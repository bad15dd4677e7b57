//! Config drives, as text and as servers send them.

#![no_main]

use farrier_disk::config_drive::ConfigDrive;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        ConfigDrive::decode(text).ok();
    }
    ConfigDrive::from_download(bytes.to_vec()).ok();
});
