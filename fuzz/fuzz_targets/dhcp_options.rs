//! DHCP options of nodes, as lines of dnsmasq's files, and what dnsmasq says about addresses.

#![no_main]

use farrier_conductor::interfaces::DhcpOption;
use farrier_drivers::dhcp::{lease, option_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str, bool)| {
    let (name, value, is_new) = input;
    let ip_version = if is_new { 6 } else { 4 };
    let option = DhcpOption { name: name.to_owned(), value: value.to_owned(), ip_version };
    if let Ok(line) = option_text::line("t", &option) {
        assert!(line.starts_with("tag:t,") && line.chars().all(|character| character.is_ascii_graphic()), "{line:?}");
        // Nothing stands behind the value, and nothing before it but tags and a number.
        let parts: Vec<_> = line.split(',').collect();
        let (tags, rest) = parts.split_at(parts.len() - 2);
        assert!(tags.iter().all(|part| part.starts_with("tag:")), "{line:?}");
        assert!(rest[0].trim_start_matches("option6:").parse::<u8>().is_ok(), "{line:?}");
    }
    lease::of_file(name);
    lease::Log::default().lease(value);
});
