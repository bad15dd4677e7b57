//! LLDP frames of switches.

#![no_main]

use farrier_hardware::inventory::lldp::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|frame: &[u8]| {
    let found: usize = parse("eth0", frame).iter().map(|value| 2 + value.1.len() / 2).sum();
    assert!(found <= frame.len(), "{found} bytes came from nowhere");
});
