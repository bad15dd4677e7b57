//! Root device hints, read and compared with a disk.

#![no_main]

use farrier_disk::BlockDevice;
use farrier_disk::hints::Hints;
use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::OnceLock;

fn device() -> Option<&'static BlockDevice> {
    static DEVICE: OnceLock<Option<BlockDevice>> = OnceLock::new();
    DEVICE.get_or_init(|| BlockDevice::describe(Path::new("/sys"), "loop0").ok()).as_ref()
}

fuzz_target!(|text: &str| {
    let Ok(value) = serde_json::from_str(text) else { return };
    if let (Ok(hints), Some(device)) = (Hints::parse(&value), device()) {
        let is_wanted = hints.verdicts(device).iter().all(|verdict| verdict.to_string().len() > 4);
        assert!(is_wanted, "a verdict says nothing");
        hints.mismatch(device);
    }
});
