//! Software RAID configurations of operators.

#![no_main]

use farrier_disk::md::config::RaidConfig;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    if let Ok(config) = RaidConfig::parse(&value, &[]) {
        let wanted = value["logical_disks"].as_array().map_or(0, Vec::len);
        assert!(config.volumes.len() <= wanted, "{config:?}");
    }
});
