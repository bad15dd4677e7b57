//! RAID volumes on the command line.

use crate::commands::json_argument;
use serde_json::{Map, Value};
use std::str::FromStr;

/// The volumes that are wanted as JSON, or read from the file with this name.
#[derive(Debug, Clone)]
pub(crate) struct RaidConfig(pub(crate) Map<String, Value>);

impl FromStr for RaidConfig {
    type Err = String;

    fn from_str(argument: &str) -> Result<Self, Self::Err> {
        let config = serde_json::from_str(&json_argument::text(argument, '{')?);
        config.map(Self).map_err(|error| format!("must be a JSON object with logical_disks: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_an_object_or_a_file_with_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("raid.json");
        std::fs::write(&file, r#"{"logical_disks": []}"#).unwrap();
        let of_file = file.to_str().unwrap().parse::<RaidConfig>().unwrap();
        assert_eq!(of_file.0, r#"{"logical_disks": []}"#.parse::<RaidConfig>().unwrap().0);
        for wrong in ["{", "no-such-file", "[]"] {
            assert!(wrong.parse::<RaidConfig>().is_err(), "{wrong}");
        }
    }
}
