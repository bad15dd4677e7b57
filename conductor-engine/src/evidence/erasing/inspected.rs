//! The disks that the last inspection of a machine saw, as far as an erasure is compared with them.

use crate::evidence::erasing::statement::ExaminedDisk;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// What software RAID makes of disks: it goes with them.
const ARRAY: &str = "/dev/md";

/// A disk in the inventory of an inspection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InspectedDisk {
    /// Path of the device in the ramdisk of that time.
    pub name: String,
    /// Serial number.
    pub serial: Option<String>,
    /// World Wide Name.
    pub wwn: Option<String>,
    /// Size in bytes.
    pub size: u64,
}

impl InspectedDisk {
    /// The disks of an inventory, but for volumes of software RAID.
    pub fn of(inventory: &Map<String, Value>) -> Vec<Self> {
        let listed = inventory.get("disks").and_then(Value::as_array).into_iter().flatten();
        let disks = listed.filter_map(|disk| serde_json::from_value::<Self>(disk.clone()).ok());
        disks.filter(|disk| !disk.name.starts_with(ARRAY)).collect()
    }

    /// Whether an agent has examined it: serial number or World Wide Name are the same, or, where the disk told
    /// neither, device and size.
    pub(super) fn is(&self, examined: &ExaminedDisk) -> bool {
        let known = |name: &Option<String>| {
            name.as_deref().map(|name| name.trim().to_lowercase()).filter(|name| !name.is_empty())
        };
        let is_same = |one: &Option<String>, other: &Option<String>| {
            known(one).is_some_and(|one| known(other).is_some_and(|other| one == other))
        };
        if known(&self.serial).is_none() && known(&self.wwn).is_none() {
            return self.name == examined.device && self.size == examined.size_bytes;
        }
        is_same(&self.serial, &examined.serial) || is_same(&self.wwn, &examined.wwn)
    }
}

impl fmt::Display for InspectedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.serial.as_deref().or(self.wwn.as_deref()).map(str::trim);
        f.write_str(name.filter(|name| !name.is_empty()).unwrap_or(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn e15_disks_of_an_inspection_are_recognised_by_what_they_told() {
        let inventory = json!({"disks": [
            {"name": "/dev/sda", "serial": " S1 ", "wwn": "0x5000C500", "size": 10},
            {"name": "/dev/sdb", "serial": null, "wwn": "0x5000c501", "size": 10},
            {"name": "/dev/sdc", "serial": "", "size": 10},
            {"name": "/dev/md0", "serial": null, "size": 10},
            "nonsense",
        ]});
        let disks = InspectedDisk::of(inventory.as_object().unwrap());
        let names: Vec<_> = disks.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["S1", "0x5000c501", "/dev/sdc"]);
        let examined = |device: &str, serial: Option<&str>, wwn: Option<&str>, size: u64| {
            let disk = json!({"device": device, "serial": serial, "wwn": wwn, "size_bytes": size, "verdict": "kept"});
            serde_json::from_value::<ExaminedDisk>(disk).unwrap()
        };
        for (place, found, expected) in [
            (0, examined("/dev/sdz", Some("S1"), None, 9), true),
            (0, examined("/dev/sdz", None, Some("0x5000c500"), 9), true),
            (0, examined("/dev/sda", Some("S2"), None, 10), false),
            (1, examined("/dev/sdb", Some("S1"), Some("0x5000c501"), 10), true),
            (1, examined("/dev/sdb", None, None, 10), false),
            (2, examined("/dev/sdc", None, None, 10), true),
            (2, examined("/dev/sdc", None, None, 11), false),
        ] {
            assert_eq!(disks[place].is(&found), expected, "{place} {found:?}");
        }
    }
}
