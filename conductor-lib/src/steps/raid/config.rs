//! Whether a configuration of RAID volumes can be meant (section 1.12).

use crate::interfaces::base::Properties;
use farrier_protocol::hints::Hints;
use serde_json::{Map, Value};

/// The only key of a configuration.
const LOGICAL_DISKS: &str = "logical_disks";

/// The levels that a volume may have.
const LEVELS: &[&str] = &["JBOD", "0", "1", "2", "5", "6", "1+0", "5+0", "6+0"];

/// The keys of a volume that operators may set, with what they mean.
pub const LOGICAL_DISK_PROPERTIES: Properties = &[
    ("size_gb", "size in GiB, or MAX for what is left; needed"),
    ("raid_level", "JBOD, 0, 1, 2, 5, 6, 1+0, 5+0 or 6+0; needed"),
    ("volume_name", "name of the volume"),
    ("is_root_volume", "true: the volume gets the operating system; at most one volume"),
    ("share_physical_disks", "true: other volumes may use its disks too"),
    ("disk_type", "hdd or ssd"),
    ("interface_type", "sata, scsi or sas"),
    ("number_of_physical_disks", "number of its disks"),
    ("controller", "name of the controller, or software"),
    ("physical_disks", "names of its disks, or root device hints for each of at least two; needs controller"),
];

/// What a value must be.
enum Wanted {
    /// A size.
    Size,
    /// A whole number above zero.
    Count,
    /// A text.
    Text,
    /// True or false.
    Flag,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// Disks.
    Disks,
}

fn wanted(key: &str) -> Option<Wanted> {
    Some(match key {
        "size_gb" => Wanted::Size,
        "raid_level" => Wanted::OneOf(LEVELS),
        "volume_name" | "controller" => Wanted::Text,
        "is_root_volume" | "share_physical_disks" => Wanted::Flag,
        "disk_type" => Wanted::OneOf(&["hdd", "ssd"]),
        "interface_type" => Wanted::OneOf(&["sata", "scsi", "sas"]),
        "number_of_physical_disks" => Wanted::Count,
        "physical_disks" => Wanted::Disks,
        _ => return None,
    })
}

/// Whether a configuration can be meant.
///
/// # Errors
///
/// All that is wrong with it, a text for each.
pub fn check(config: &Map<String, Value>) -> Result<(), Vec<String>> {
    let mut faults: Vec<_> = config
        .keys()
        .filter(|key| *key != LOGICAL_DISKS)
        .map(|key| format!("the key {key:?} is not known"))
        .collect();
    match config.get(LOGICAL_DISKS).and_then(Value::as_array).map(Vec::as_slice) {
        None | Some([]) => faults.push(format!("{LOGICAL_DISKS} must be a list of at least one volume")),
        Some(volumes) => {
            for (number, volume) in (1..).zip(volumes) {
                let of_volume = check_volume(volume);
                faults.extend(of_volume.into_iter().map(|fault| format!("volume {number}: {fault}")));
            }
            if volumes.iter().filter(|volume| volume["is_root_volume"] == true).count() > 1 {
                faults.push("more than one volume has is_root_volume true; leave one".to_owned());
            }
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn check_volume(volume: &Value) -> Vec<String> {
    let Some(volume) = volume.as_object() else { return vec!["must be an object".to_owned()] };
    let missing = ["size_gb", "raid_level"].into_iter().filter(|key| !volume.contains_key(*key));
    let mut faults: Vec<_> = missing.map(|key| format!("{key} is missing")).collect();
    for (key, value) in volume {
        match wanted(key) {
            None => faults.push(format!("the key {key:?} is not known")),
            Some(wanted) => faults.extend(wanted.fault(value).map(|fault| format!("{key} {fault}"))),
        }
    }
    if volume.contains_key("physical_disks") && !volume.contains_key("controller") {
        faults.push("physical_disks needs a controller; software is one".to_owned());
    }
    faults
}

impl Wanted {
    /// What is wrong with a value, as the end of a sentence that begins with its key.
    fn fault(&self, value: &Value) -> Option<String> {
        let is_count = || value.as_u64().is_some_and(|number| number > 0);
        let must_be = |right: bool, what: &str| (!right).then(|| format!("must be {what}, not {value}"));
        match self {
            Self::Size => must_be(*value == "MAX" || is_count(), "a whole number of GiB above 0, or \"MAX\""),
            Self::Count => must_be(is_count(), "a whole number above 0"),
            Self::Text => must_be(value.as_str().is_some_and(|text| !text.is_empty()), "a non-empty text"),
            Self::Flag => must_be(value.is_boolean(), "true or false"),
            Self::OneOf(texts) => must_be(
                value.as_str().is_some_and(|text| texts.contains(&text)),
                &format!("one of the texts {}", texts.join(", ")),
            ),
            Self::Disks => disks_fault(value),
        }
    }
}

fn disks_fault(value: &Value) -> Option<String> {
    let disks = value.as_array().map_or(&[][..], Vec::as_slice);
    if !disks.is_empty() && disks.iter().all(|disk| disk.as_str().is_some_and(|name| !name.is_empty())) {
        return None;
    }
    if disks.len() < 2 || !disks.iter().all(Value::is_object) {
        return Some("must be a list of names, or of at least two objects with root device hints".to_owned());
    }
    disks.iter().find_map(|hints| Hints::parse(hints).err()).map(|error| format!("cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults(config: Value) -> Vec<String> {
        check(config.as_object().unwrap()).err().unwrap_or_default()
    }

    /// A volume with one more key, or another value of one.
    fn with(key: &str, value: Value) -> Value {
        let mut volume = json!({"size_gb": 100, "raid_level": "1"});
        volume[key] = value;
        json!({"logical_disks": [volume]})
    }

    #[test]
    fn what_can_be_meant_is_taken() {
        for level in LEVELS {
            assert_eq!(faults(with("raid_level", json!(level))), [""; 0]);
        }
        for (key, value) in [
            ("size_gb", json!("MAX")),
            ("volume_name", json!("os")),
            ("is_root_volume", json!(false)),
            ("share_physical_disks", json!(true)),
            ("disk_type", json!("ssd")),
            ("interface_type", json!("sas")),
            ("number_of_physical_disks", json!(2)),
            ("controller", json!("software")),
        ] {
            assert_eq!(faults(with(key, value)), [""; 0], "{key}");
        }
        let disks = json!([{"size": "> 500"}, {"serial": "A1"}]);
        for disks in [disks, json!(["0:1:2"]), json!(["a", "b"])] {
            let volume =
                json!({"size_gb": 1, "raid_level": "0", "controller": "software", "physical_disks": disks});
            assert_eq!(faults(json!({"logical_disks": [volume]})), [""; 0], "{disks}");
        }
    }

    #[test]
    fn each_fault_is_told_in_words_of_its_own() {
        for (config, expected) in [
            (json!({}), "logical_disks must be a list of at least one volume"),
            (json!({"logical_disks": []}), "logical_disks must be a list of at least one volume"),
            (json!({"logical_disks": {}}), "logical_disks must be a list of at least one volume"),
            (json!({"logical_disks": [7]}), "volume 1: must be an object"),
            (
                with("size_gb", json!(0)),
                "volume 1: size_gb must be a whole number of GiB above 0, or \"MAX\", not 0",
            ),
            (
                with("size_gb", json!("max")),
                "volume 1: size_gb must be a whole number of GiB above 0, or \"MAX\", not \"max\"",
            ),
            (
                with("size_gb", json!(1.5)),
                "volume 1: size_gb must be a whole number of GiB above 0, or \"MAX\", not 1.5",
            ),
            (
                with("raid_level", json!(1)),
                "volume 1: raid_level must be one of the texts JBOD, 0, 1, 2, 5, 6, 1+0, 5+0, 6+0, not 1",
            ),
            (
                with("disk_type", json!("tape")),
                "volume 1: disk_type must be one of the texts hdd, ssd, not \"tape\"",
            ),
            (
                with("interface_type", json!("usb")),
                "volume 1: interface_type must be one of the texts sata, scsi, sas, not \"usb\"",
            ),
            (with("volume_name", json!("")), "volume 1: volume_name must be a non-empty text, not \"\""),
            (
                with("is_root_volume", json!("yes")),
                "volume 1: is_root_volume must be true or false, not \"yes\"",
            ),
            (
                with("number_of_physical_disks", json!(-1)),
                "volume 1: number_of_physical_disks must be a whole number above 0, not -1",
            ),
            (with("colour", json!("red")), "volume 1: the key \"colour\" is not known"),
            (
                with("physical_disks", json!(["a"])),
                "volume 1: physical_disks needs a controller; software is one",
            ),
        ] {
            assert_eq!(faults(config.clone()), [expected], "{config}");
        }
        let disks = |disks: Value| {
            let volume =
                json!({"size_gb": 1, "raid_level": "0", "controller": "software", "physical_disks": disks});
            faults(json!({"logical_disks": [volume]})).join("; ")
        };
        for few in [json!([]), json!([{"size": 1}]), json!("a"), json!(["a", {"size": 1}]), json!([""])] {
            assert!(disks(few.clone()).contains("a list of names, or of at least two objects"), "{few}");
        }
        assert!(disks(json!([{"size": 1}, {"siez": 1}])).contains("root device hint siez"));
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let root = json!({"is_root_volume": true, "size_gb": 1, "raid_level": "1"});
        let config = json!({"logical_disks": [root, root, {}], "comment": ""});
        assert_eq!(
            faults(config),
            [
                "the key \"comment\" is not known",
                "volume 3: size_gb is missing",
                "volume 3: raid_level is missing",
                "more than one volume has is_root_volume true; leave one",
            ]
        );
    }

    #[test]
    fn every_key_has_its_rule_and_its_words() {
        for (key, help) in LOGICAL_DISK_PROPERTIES {
            assert!(wanted(key).is_some() && !help.is_empty(), "{key}");
        }
    }
}
