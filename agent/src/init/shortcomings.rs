//! What the ramdisk lacks for this machine: drivers and firmware, one line each.

use farrier_linux::{kernel_log, sysfs};
use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// How long drivers may take to see to their devices, once they are loaded.
const GRACE: Duration = Duration::from_secs(10);
/// Classes of PCI devices without which a machine cannot be deployed, and what they are.
const NEEDED: [(&str, &str); 2] = [("0x01", "storage controller"), ("0x02", "network card")];
/// What stands before the name of a file in the kernel's words, and in Debian's.
const NOT_LOADED: [&str; 2] = ["Direct firmware load for ", "firmware: failed to load "];

/// Logs it, after drivers had their time.
pub fn log_later() {
    thread::spawn(|| {
        thread::sleep(GRACE);
        for device in without_driver(Path::new("/sys")) {
            tracing::warn!(
                "{device} has no driver in this ramdisk: \
                 pack it with farrier-image build --module, or take another kernel"
            );
        }
        let log = kernel_log::read().inspect_err(|error| tracing::debug!(%error, "no kernel log")).ok();
        for file in missing_firmware(&String::from_utf8_lossy(&log.unwrap_or_default())) {
            tracing::warn!("the firmware {file} is missing: pack it with farrier-image build --firmware");
        }
    });
}

fn without_driver(sysfs: &Path) -> Vec<String> {
    let devices = sysfs.join("bus/pci/devices");
    let names = sysfs::entries(&devices).into_iter();
    names
        .filter_map(|name| {
            let device = devices.join(&name);
            let class = sysfs::attribute(&device, "class")?;
            let (_, kind) = NEEDED.iter().find(|(prefix, _)| class.starts_with(prefix))?;
            if device.join("driver").exists() {
                return None;
            }
            let id = |file| sysfs::attribute(&device, file).map(|text| text.replace("0x", ""));
            Some(format!("{kind} {name} ({}:{})", id("vendor")?, id("device")?))
        })
        .collect()
}

fn missing_firmware(log: &str) -> BTreeSet<&str> {
    let files = log.lines().filter_map(|line| {
        let (_, rest) = NOT_LOADED.iter().find_map(|words| line.split_once(words))?;
        rest.split_whitespace().next()
    });
    files.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_missing_module_is_one_line_naming_its_device() {
        let sysfs = tempfile::tempdir().unwrap();
        for (name, class, has_driver) in [
            ("0000:01:00.0", "0x020000", true),
            ("0000:02:00.0", "0x020000", false),
            ("0000:03:00.0", "0x010700", false),
            ("0000:04:00.0", "0x030000", false),
        ] {
            let device = sysfs.path().join("bus/pci/devices").join(name);
            fs::create_dir_all(&device).unwrap();
            for (file, text) in [("class", class), ("vendor", "0x8086"), ("device", "0x1592")] {
                fs::write(device.join(file), text).unwrap();
            }
            if has_driver {
                fs::create_dir(device.join("driver")).unwrap();
            }
        }
        let expected =
            ["network card 0000:02:00.0 (8086:1592)", "storage controller 0000:03:00.0 (8086:1592)"];
        assert_eq!(without_driver(sysfs.path()), expected);
    }

    #[test]
    fn a_missing_firmware_is_one_line_naming_its_file() {
        let log = "[    1.1] bnx2x 0000:02:00.0: Direct firmware load for bnx2x/bnx2x-e2.fw failed with error -2\n\
                   [    1.2] tg3 0000:03:00.0: firmware: failed to load tigon/tg3_tso.bin (-2)\n\
                   [    1.3] tg3 0000:03:00.0: firmware: failed to load tigon/tg3_tso.bin (-2)\n\
                   [    1.4] ice 0000:04:00.0: The DDP package was successfully loaded\n";
        let expected = BTreeSet::from(["bnx2x/bnx2x-e2.fw", "tigon/tg3_tso.bin"]);
        assert_eq!(missing_firmware(log), expected);
    }
}
