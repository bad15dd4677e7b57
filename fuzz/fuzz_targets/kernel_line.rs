//! The kernel command line.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &str| {
    for (name, value) in farrier_linux::kernel_line::parse(line) {
        assert!(line.contains(&format!("{name}={value}")), "{name} came from nowhere");
    }
});
