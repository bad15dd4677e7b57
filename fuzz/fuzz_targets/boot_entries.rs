//! Existing entries of the firmware's boot menu, and their order.

#![no_main]

use farrier_boot::entry::clean::{DEFAULT_PATTERNS, Patterns, remove};
use farrier_fuzz::Firmware;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    Patterns::parse(DEFAULT_PATTERNS.iter().copied()).expect("the patterns that are built in are regular")
});

fuzz_target!(|entry: &[u8]| {
    let firmware = Firmware::with_entry(Some(entry));
    let variables = firmware.variables();
    if let Ok(removed) = remove(&PATTERNS, &variables) {
        assert!(removed.len() <= 1, "{removed:?}");
        assert!(remove(&PATTERNS, &variables).is_ok_and(|again| again.is_empty()), "one is still there");
    }
});
