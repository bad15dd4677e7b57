//! SMBIOS tables of firmware.

#![no_main]

use farrier_hardware::smbios::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|table: &[u8]| {
    for structure in parse(table) {
        for offset in 0..=255 {
            structure.text(offset);
        }
    }
});
