//! Events of the kernel about devices.

#![no_main]

use farrier_linux::uevent::Uevent;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(event) = Uevent::parse(bytes) {
        let text = std::str::from_utf8(bytes).expect("an event is text");
        assert!(event.properties.values().all(|value| text.contains(value.as_str())), "{event:?}");
    }
});
