//! The disk for the operating system.

use crate::inventory::hooks::{Changes, Inspected};
use farrier_protocol::hints::{Condition, Hint, Hints};
use serde_json::{Value, json};

/// Bytes in the unit of sizes.
const GIB: u64 = 1 << 30;

/// What is left of a disk for its partition tables, in GiB, as Ironic does it.
const FOR_TABLES: u64 = 1;

/// Finds the disk that the root device hints mean, or takes the one that the agent would choose without, and sets
/// `local_gb` to its size. Hints that no disk satisfies fail the inspection; a machine without disks changes nothing.
pub(super) fn look(inspected: &Inspected<'_>) -> Result<Changes, String> {
    let disk = match inspected.node.properties.root_device() {
        Some(hints) => Some(meant(hints, inspected.data.inventory.get("disks"))?),
        None => inspected.data.plugin_data.get("root_disk").filter(|disk| disk.is_object()),
    };
    let Some(disk) = disk else { return Ok(Changes::default()) };
    let size = disk.get("size").and_then(Value::as_u64).unwrap_or(0) / GIB;
    let mut changes = Changes::property("local_gb", size.saturating_sub(FOR_TABLES));
    changes.plugin_data.insert("root_disk".to_owned(), disk.clone());
    Ok(changes)
}

fn meant<'a>(hints: &Value, disks: Option<&'a Value>) -> Result<&'a Value, String> {
    let hints = Hints::parse(hints).map_err(|error| error.to_string())?;
    let disks = disks.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let found = disks.iter().find(|disk| hints.iter().all(|hint| satisfies(disk, hint)));
    found.ok_or_else(|| {
        let names: Vec<_> = disks.iter().filter_map(|disk| disk.get("name")?.as_str()).collect();
        format!("no disk of {:?} satisfies the root device hints {hints}; correct them", names.join(", "))
    })
}

/// An inventory has one form of each value, where the agent that chooses the disk knows several.
fn satisfies(disk: &Value, hint: &Hint) -> bool {
    let value = disk.get(hint.name).unwrap_or(&Value::Null);
    match &hint.condition {
        Condition::Size(comparison, gib) => {
            let size = value.as_u64().map(u128::from);
            size.is_some_and(|size| comparison.holds(size.cmp(&(u128::from(*gib) * u128::from(GIB)))))
        }
        Condition::Flag(flag) => *value == json!(flag),
        condition => value.as_str().is_some_and(|text| condition.holds_for(&text.trim().to_lowercase())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::look;
    use serde_json::{Value, json};

    /// Name of the disk, and what is set.
    fn chosen(hints: Value, root_disk: Value) -> Result<(Value, Value), String> {
        let disks = json!([
            {"name": "/dev/sda", "size": 500_u64 << 30, "rotational": true, "serial": "A1", "model": "Fancy  "},
            {"name": "/dev/nvme0n1", "size": (100_u64 << 30) + 7, "rotational": false, "serial": "B2", "wwn": null},
        ]);
        let inventory = json!({"disks": disks});
        let changes =
            look("root-device", json!({"root_device": hints}), inventory, json!({"root_disk": root_disk}))?;
        let name = changes.plugin_data.get("root_disk").map(|disk| disk["name"].clone());
        Ok((name.unwrap_or_default(), changes.properties.get("local_gb").cloned().unwrap_or_default()))
    }

    #[test]
    fn the_hints_come_before_what_the_agent_would_choose() {
        let default = json!({"name": "/dev/nvme0n1", "size": 100_u64 << 30});
        for (hints, name, local_gb) in [
            (json!(null), json!("/dev/nvme0n1"), json!(99)),
            (json!({"serial": "a1"}), json!("/dev/sda"), json!(499)),
            (json!({"size": ">= 101"}), json!("/dev/sda"), json!(499)),
            (json!({"size": 500, "rotational": "yes"}), json!("/dev/sda"), json!(499)),
            (json!({"rotational": false}), json!("/dev/nvme0n1"), json!(99)),
            (json!({"model": "fancy"}), json!("/dev/sda"), json!(499)),
        ] {
            assert_eq!(chosen(hints.clone(), default.clone()), Ok((name, local_gb)), "{hints}");
        }
        assert_eq!(chosen(json!(null), json!(null)), Ok((Value::Null, Value::Null)));
    }

    #[test]
    fn hints_that_no_disk_satisfies_fail_the_inspection() {
        for (hints, part) in [
            (
                json!({"serial": "C3"}),
                "\"/dev/sda, /dev/nvme0n1\" satisfies the root device hints serial \"C3\"",
            ),
            (json!({"wwn": "0x5"}), "satisfies the root device hints wwn"),
            (json!({"seriall": "A1"}), "seriall"),
        ] {
            let error = chosen(hints, json!(null)).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
