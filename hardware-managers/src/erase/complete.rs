//! Whether all disks of the machine can be seen. A disk that is not listed is not erased, without an error.

use super::certificate::Record;
use super::error::EraseError;
use super::failed;
use super::unseen::Examination;
use crate::error::StepError;
use farrier_disk::{guard, list};
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::lookup::Node;
use serde_json::Value;
use std::path::Path;

/// Property of a node: the machine has no disks, and that is as it should be.
const DISKLESS: &str = "farrier_diskless";
/// Property of a node: addresses or identities of storage controllers that need no driver, and of storage that is no
/// block device and is left alone.
const SKIPPED_CONTROLLERS: &str = "farrier_skip_controllers";

/// Looks for storage that is no block device in the sysfs mounted at `sysfs`, but for what the node's property leaves
/// alone.
pub fn examine(node: &Node, sysfs: &Path) -> Examination {
    let skipped = node.properties.get(SKIPPED_CONTROLLERS).and_then(Value::as_array);
    let is_skipped = |text: &str| skipped.is_some_and(|list| list.iter().any(|entry| entry == text));
    Examination::of(sysfs).without(is_skipped)
}

/// Refuses to erase while devices are missing, a storage controller has no driver, or storage is no block device.
///
/// # Errors
///
/// A `BlockDeviceEraseError` naming each of them.
pub fn require(found: &Examination, missing: &[String]) -> Result<(), StepError> {
    let awaited = missing.iter().map(|text| format!("still waited for: {text}"));
    let lacking = found.without_driver.iter().map(|one| match missing {
        [] => format!(
            "{one} has no driver in this ramdisk: pack it with farrier-image build --module, or name the \
             controller in the node's {SKIPPED_CONTROLLERS}"
        ),
        // Its own driver may be what is waited for.
        _ => format!("{one} has no driver yet"),
    });
    let unseen = found.unseen.iter().filter(|one| one.storage.refuses()).map(|one| {
        let names =
            one.names.first().map(|name| format!(", or name {name} in the node's {SKIPPED_CONTROLLERS}"));
        format!("{one}{}", names.unwrap_or_default())
    });
    let reasons: Vec<_> = awaited.chain(lacking).chain(unseen).collect();
    if reasons.is_empty() { Ok(()) } else { Err(refused(&reasons.join("; "))) }
}

/// A sentence for each storage that is not examined, and does not keep the machine from being called clean.
pub fn not_examined(found: &Examination) -> impl Iterator<Item = String> {
    found.unseen.iter().filter(|one| !one.storage.refuses()).map(ToString::to_string)
}

/// Refuses to call a machine clean on which no disk is seen, unless it is known to have none.
///
/// # Errors
///
/// A `BlockDeviceEraseError`.
pub fn require_any(node: &Node, has_disks: bool) -> Result<(), StepError> {
    if has_disks || node.properties.get(DISKLESS).is_some_and(is_true) {
        return Ok(());
    }
    Err(refused(&format!(
        "no disk is seen: look at cables, power and controllers; a machine that has no disks says so by the \
         property {DISKLESS} of its node"
    )))
}

/// Ironic keeps what a command line gave it as text.
fn is_true(value: &Value) -> bool {
    *value == Value::Bool(true) || value.as_str().is_some_and(|text| text.eq_ignore_ascii_case("true"))
}

/// A failure for each disk without a size that is not on the node's list of skipped disks.
///
/// # Errors
///
/// As [`guard::plan_erase`].
pub fn without_size(node: &Node, sysfs: &Path) -> Result<Vec<Record>, StepError> {
    let plan = guard::plan_erase(node, &list::without_size(sysfs).map_err(failed)?).map_err(failed)?;
    Ok(plan.targets.iter().map(|target| Record::failed(target.device(), EraseError::NoSize)).collect())
}

fn refused(reason: &str) -> StepError {
    let details = format!("nothing is erased: {reason}");
    StepError::Failed(CommandError::new(ErrorKind::BlockDeviceEraseError, details))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;

    fn node(properties: Value) -> Node {
        Node { properties: serde_json::from_value(properties).unwrap(), ..Node::default() }
    }

    /// What keeps a machine from being erased.
    fn refusal(node: &Node, sysfs: &Path, missing: &[String]) -> String {
        text(require(&examine(node, sysfs), missing))
    }

    fn text(outcome: Result<(), StepError>) -> String {
        outcome.err().map(|error| CommandError::from(error).details).unwrap_or_default()
    }

    /// A machine with a SAS controller and a network card without drivers.
    fn machine() -> tempfile::TempDir {
        let sysfs = tempfile::tempdir().unwrap();
        for (address, class) in [("0000:03:00.0", "0x010700"), ("0000:04:00.0", "0x020000")] {
            let device = sysfs.path().join("bus/pci/devices").join(address);
            fs::create_dir_all(&device).unwrap();
            for (file, text) in [("class", class), ("vendor", "0x1000"), ("device", "0x0097")] {
                fs::write(device.join(file), text).unwrap();
            }
        }
        sysfs
    }

    #[test]
    fn x03_a_machine_whose_controller_has_no_driver_is_not_called_clean() {
        let machine = machine();
        let told = refusal(&node(json!({})), machine.path(), &[]);
        assert!(told.contains("storage controller 0000:03:00.0 (1000:0097) has no driver"), "{told}");
        assert!(!told.contains("0000:04:00.0"), "{told}");
        for skipped in ["0000:03:00.0", "1000:0097"] {
            let node = node(json!({"farrier_skip_controllers": [skipped]}));
            assert_eq!(refusal(&node, machine.path(), &[]), "", "{skipped}");
        }
        let loading = ["the driver mpt3sas is being loaded".to_owned()];
        let told = refusal(&node(json!({})), machine.path(), &loading);
        assert!(told.starts_with("nothing is erased: still waited for: the driver mpt3sas"), "{told}");
        assert!(told.ends_with("(1000:0097) has no driver yet"), "{told}");
        let other = node(json!({"farrier_skip_controllers": ["0000:05:00.0"]}));
        assert_ne!(refusal(&other, machine.path(), &[]), "");
    }

    #[test]
    fn g03_storage_that_is_no_block_device_refuses_unless_it_is_skipped_and_a_tape_is_told() {
        let sysfs = tempfile::tempdir().unwrap();
        for (address, kind) in [("2:0:3:0", "0"), ("2:0:4:0", "1")] {
            let device = sysfs.path().join("bus/scsi/devices").join(address);
            fs::create_dir_all(&device).unwrap();
            fs::write(device.join("type"), kind).unwrap();
        }
        let told = refusal(&node(json!({})), sysfs.path(), &[]);
        assert!(told.contains("SCSI disk 2:0:3:0") && told.contains("name 2:0:3:0 in the node's"), "{told}");
        assert!(!told.contains("2:0:4:0"), "{told}");
        let skipping = node(json!({"farrier_skip_controllers": ["2:0:3:0"]}));
        assert_eq!(refusal(&skipping, sysfs.path(), &[]), "");
        let listed: Vec<_> = not_examined(&examine(&skipping, sysfs.path())).collect();
        assert_eq!(listed.len(), 1, "{listed:?}");
        assert!(listed[0].contains("tape drive 2:0:4:0"), "{listed:?}");
    }

    #[test]
    fn x02_nothing_is_erased_while_a_controller_is_scanning() {
        let empty = tempfile::tempdir().unwrap();
        let missing = ["scsi host2 (mpt3sas, 0000:03:00.0) is scanning".to_owned()];
        let told = refusal(&node(json!({})), empty.path(), &missing);
        assert!(told.contains("nothing is erased") && told.contains(&missing[0]), "{told}");
        assert_eq!(refusal(&node(json!({})), empty.path(), &[]), "");
    }

    #[test]
    fn x03_a_machine_without_disks_says_so() {
        for (properties, has_disks, is_refused) in [
            (json!({}), true, false),
            (json!({}), false, true),
            (json!({"farrier_diskless": true}), false, false),
            (json!({"farrier_diskless": "True"}), false, false),
            (json!({"farrier_diskless": false}), false, true),
        ] {
            let told = text(require_any(&node(properties.clone()), has_disks));
            assert_eq!(told.contains("farrier_diskless"), is_refused, "{properties}: {told}");
        }
    }

    #[test]
    fn x03_a_disk_of_size_0_fails_unless_it_is_skipped() {
        let sysfs = tempfile::tempdir().unwrap();
        for (name, size) in [("sda", "1000"), ("sdb", "0")] {
            let device = sysfs.path().join("block").join(name);
            fs::create_dir_all(device.join("device")).unwrap();
            fs::write(device.join("size"), size).unwrap();
        }
        let records = without_size(&node(json!({})), sysfs.path()).unwrap();
        let failures: Vec<_> = records.iter().filter_map(Record::failure).collect();
        assert_eq!(failures.len(), 1);
        assert!(failures[0].contains("/dev/sdb") && failures[0].contains("size of 0"), "{failures:?}");
        let skipped = node(json!({"skip_block_devices": [{"name": "/dev/sdb"}]}));
        assert!(without_size(&skipped, sysfs.path()).unwrap().is_empty());
    }
}
