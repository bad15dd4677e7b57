//! The volumes that an operator wants: the JSON of `target_raid_config` (section 9.9).

use crate::error::Error;
use crate::hints::Hints;
use serde_json::{Map, Value};

/// The controller of volumes that Linux makes.
const CONTROLLER: &str = "software";

/// The size of a volume that takes what is left.
const REST: &str = "MAX";

/// Longest name of a volume, so that the superblock has room for the host's before it.
const LONGEST_NAME: usize = 27;

/// Name of the array that mirrors the EFI system partitions.
pub const ESP_NAME: &str = "esp";

/// The wanted volumes, in the order in which they are made: what takes the rest comes last.
#[derive(Debug, Clone)]
pub struct RaidConfig {
    /// The volumes.
    pub volumes: Vec<Volume>,
}

/// A wanted volume.
#[derive(Debug, Clone)]
pub struct Volume {
    /// Level.
    pub level: Level,
    /// How much of each disk it takes.
    pub size: Size,
    /// Name, if the operator gave one.
    pub name: Option<String>,
    /// Whether the operating system goes there; nothing when the operator does not say.
    pub is_root: Option<bool>,
    /// The disks it is made of, by one set of hints each; none means all.
    pub disks: Vec<Hints>,
}

/// Level of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Striping.
    Raid0,
    /// Mirroring.
    Raid1,
    /// Striping over mirrors.
    Raid10,
    /// Striping with parity.
    Raid5,
    /// Striping with two parities.
    Raid6,
}

/// Size of a volume's member on each disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// So many bytes, whole GiB.
    Bytes(u64),
    /// What is left.
    Rest,
}

impl Level {
    /// Words of the configuration, numbers of mdadm, and fewest members.
    const ALL: &'static [(Self, &'static str, &'static str, usize)] = &[
        (Self::Raid0, "0", "0", 2),
        (Self::Raid1, "1", "1", 2),
        (Self::Raid10, "1+0", "10", 2),
        (Self::Raid5, "5", "5", 3),
        (Self::Raid6, "6", "6", 4),
    ];

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, ..)| *known == word).map(|(level, ..)| *level)
    }

    fn entry(self) -> &'static (Self, &'static str, &'static str, usize) {
        Self::ALL.iter().find(|(level, ..)| *level == self).expect("every level is in the table")
    }

    /// The number by which mdadm knows it.
    pub fn number(self) -> &'static str {
        self.entry().2
    }

    /// How many members it needs.
    pub fn fewest_members(self) -> usize {
        self.entry().3
    }
}

impl RaidConfig {
    /// Reads and checks a configuration; `kept` are the names of volumes that must stay.
    ///
    /// Nothing, null and an empty object want no volumes, and so does one without software volumes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRaidConfig`] with everything that is wrong.
    pub fn parse(value: &Value, kept: &[String]) -> Result<Self, Error> {
        let mut faults = Vec::new();
        let disks = logical_disks(value).map_err(|reason| Error::InvalidRaidConfig { reason })?;
        let is_software = |disk: &&Map<String, Value>| disk.get("controller") == Some(&CONTROLLER.into());
        if !disks.iter().any(is_software) {
            return Ok(Self { volumes: Vec::new() });
        }
        let volumes = disks.iter().enumerate().filter_map(|(index, disk)| {
            if !is_software(disk) {
                faults.push(format!("volume {}: its controller must be {CONTROLLER}", index + 1));
            }
            Volume::parse(index, disk, &mut faults)
        });
        let mut volumes: Vec<_> = volumes.collect();
        if faults.is_empty() {
            check_together(&volumes, kept, &mut faults);
        }
        if !faults.is_empty() {
            return Err(Error::InvalidRaidConfig { reason: faults.join("; ") });
        }
        // Stable: those with a size keep their order.
        volumes.sort_by_key(|volume| volume.size == Size::Rest);
        Ok(Self { volumes })
    }

    /// The name of each volume, and whether it is the root volume where that is stated. A configuration that
    /// cannot be read has none.
    pub fn names(value: &Value) -> Vec<(String, Option<bool>)> {
        let volumes = Self::parse(value, &[]).map(|config| config.volumes).unwrap_or_default();
        let named = volumes.iter().enumerate();
        named.map(|(index, volume)| (volume.name_or(index as u32), volume.is_root)).collect()
    }
}

impl Volume {
    fn parse(index: usize, disk: &Map<String, Value>, faults: &mut Vec<String>) -> Option<Self> {
        let before = faults.len();
        let mut fault = |text: String| faults.push(format!("volume {}: {text}", index + 1));
        let level = disk.get("raid_level").and_then(Value::as_str).and_then(Level::parse);
        if level.is_none() {
            fault("raid_level must be one of 0, 1, 1+0, 5, 6".to_owned());
        }
        let size = size(disk.get("size_gb"));
        if size.is_none() {
            fault(format!("size_gb must be a whole number above 0, or {REST}"));
        }
        let name = disk.get("volume_name").filter(|name| !name.is_null());
        if let Some(reason) = name.and_then(name_fault) {
            fault(reason);
        }
        let is_root = disk.get("is_root_volume").filter(|value| !value.is_null());
        if is_root.is_some_and(|value| !value.is_boolean()) {
            fault("is_root_volume must be true or false".to_owned());
        }
        let disks = hints(disk.get("physical_disks")).unwrap_or_else(|reason| {
            fault(reason);
            Vec::new()
        });
        if faults.len() > before {
            return None;
        }
        let name = name.and_then(Value::as_str).map(str::to_owned);
        Some(Self { level: level?, size: size?, name, is_root: is_root.and_then(Value::as_bool), disks })
    }

    /// Its name, which is that of the device `number` where the operator gave none.
    pub fn name_or(&self, number: u32) -> String {
        self.name.clone().unwrap_or_else(|| format!("md{number}"))
    }
}

fn logical_disks(value: &Value) -> Result<Vec<&Map<String, Value>>, String> {
    let list = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Object(object) if object.is_empty() => return Ok(Vec::new()),
        Value::Object(object) => object.get("logical_disks").and_then(Value::as_array),
        _ => None,
    };
    let list = list.ok_or("it must be an object with a list logical_disks")?;
    let object = |entry: &'_ Value| entry.is_object();
    if !list.iter().all(object) {
        return Err("every logical disk must be an object".to_owned());
    }
    Ok(list.iter().filter_map(Value::as_object).collect())
}

fn size(value: Option<&Value>) -> Option<Size> {
    match value? {
        Value::String(word) if word == REST => Some(Size::Rest),
        Value::Number(number) => {
            number.as_u64()?.checked_mul(1 << 30).filter(|size| *size > 0).map(Size::Bytes)
        }
        _ => None,
    }
}

/// What is wrong with a name. It goes into superblocks, from where other programs read it (F30).
fn name_fault(name: &Value) -> Option<String> {
    let is_bad = |letter: char| letter.is_control() || ":/\\".contains(letter);
    match name.as_str() {
        None => Some("volume_name must be a text".to_owned()),
        Some(name) if name.is_empty() || name.len() > LONGEST_NAME || name.contains(is_bad) => {
            Some(format!("volume_name must have 1 to {LONGEST_NAME} bytes and no slash or colon"))
        }
        Some(ESP_NAME) => Some(format!("the volume_name {ESP_NAME} is that of the EFI system partitions")),
        Some(_) => None,
    }
}

fn hints(value: Option<&Value>) -> Result<Vec<Hints>, String> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(Vec::new()) };
    let list = value.as_array().filter(|list| list.len() >= 2);
    let list = list.ok_or("physical_disks must be a list of at least two objects with hints")?;
    list.iter().map(|entry| Hints::parse(entry).map_err(|error| error.to_string())).collect()
}

/// Rules that concern several volumes.
fn check_together(volumes: &[Volume], kept: &[String], faults: &mut Vec<String>) {
    let mut rule = |holds: bool, text: &str| {
        if !holds {
            faults.push(text.to_owned());
        }
    };
    rule(volumes.len() <= 2, "there can be at most two software volumes");
    rule(
        volumes.first().is_none_or(|first| first.level == Level::Raid1),
        "the first volume must have raid_level 1",
    );
    let count = |is_so: fn(&Volume) -> bool| volumes.iter().filter(|volume| is_so(volume)).count();
    rule(count(|volume| volume.size == Size::Rest) <= 1, "only one volume can have the size MAX");
    rule(count(|volume| volume.is_root == Some(true)) <= 1, "only one volume can be the root volume");
    let mut names: Vec<_> = volumes.iter().filter_map(|volume| volume.name.as_deref()).collect();
    rule(
        kept.is_empty() || names.len() == volumes.len(),
        "every volume must have a volume_name, because skip_block_devices names volumes",
    );
    names.sort_unstable();
    names.dedup();
    rule(names.len() == count(|volume| volume.name.is_some()), "the volume names must differ");
    for volume in volumes.iter().filter(|volume| !volume.disks.is_empty()) {
        let fewest = volume.level.fewest_members();
        let text = format!("raid_level {} needs {fewest} disks", volume.level.entry().1);
        rule(volume.disks.len() >= fewest, &text);
    }
}

#[cfg(test)]
mod tests;
