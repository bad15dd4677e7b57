//! Whether all disks of the machine can be seen. A disk that is not listed is not erased, and nobody hears of it.

use super::certificate::Record;
use super::error::EraseError;
use super::failed;
use crate::error::StepError;
use farrier_disk::{guard, list};
use farrier_linux::driverless::{self, Kind};
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::lookup::Node;
use serde_json::Value;
use std::path::Path;

/// Property of a node: the machine has no disks, and that is as it should be.
const DISKLESS: &str = "farrier_diskless";
/// Property of a node: PCI addresses, or vendor and device, of storage controllers that need no driver.
const SKIPPED_CONTROLLERS: &str = "farrier_skip_controllers";

/// Refuses to erase while devices are missing, or a storage controller in the sysfs mounted at `sysfs` has no
/// driver.
///
/// # Errors
///
/// A `BlockDeviceEraseError` naming each of them.
pub fn require(node: &Node, sysfs: &Path, missing: &[String]) -> Result<(), StepError> {
    let skipped = node.properties.get(SKIPPED_CONTROLLERS).and_then(Value::as_array);
    let is_skipped = |text: &str| skipped.is_some_and(|list| list.iter().any(|entry| entry == text));
    let controllers = driverless::without_driver(sysfs).into_iter().filter(|one| {
        one.kind == Kind::StorageController && !is_skipped(&one.address) && !is_skipped(&one.id)
    });
    let awaited = missing.iter().map(|text| format!("still waited for: {text}"));
    let lacking = controllers.map(|one| match missing {
        [] => format!(
            "{one} has no driver in this ramdisk: pack it with farrier-image build --module, or name the \
             controller in the node's {SKIPPED_CONTROLLERS}"
        ),
        // Its own driver may be what is waited for.
        _ => format!("{one} has no driver yet"),
    });
    let reasons: Vec<_> = awaited.chain(lacking).collect();
    if reasons.is_empty() { Ok(()) } else { Err(refused(&reasons.join("; "))) }
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
        let told = text(require(&node(json!({})), machine.path(), &[]));
        assert!(told.contains("storage controller 0000:03:00.0 (1000:0097) has no driver"), "{told}");
        assert!(!told.contains("0000:04:00.0"), "{told}");
        for skipped in ["0000:03:00.0", "1000:0097"] {
            let node = node(json!({"farrier_skip_controllers": [skipped]}));
            assert_eq!(text(require(&node, machine.path(), &[])), "", "{skipped}");
        }
        let loading = ["the driver mpt3sas is being loaded".to_owned()];
        let told = text(require(&node(json!({})), machine.path(), &loading));
        assert!(told.starts_with("nothing is erased: still waited for: the driver mpt3sas"), "{told}");
        assert!(told.ends_with("(1000:0097) has no driver yet"), "{told}");
        let other = node(json!({"farrier_skip_controllers": ["0000:05:00.0"]}));
        assert_ne!(text(require(&other, machine.path(), &[])), "");
    }

    #[test]
    fn x02_nothing_is_erased_while_a_controller_is_scanning() {
        let empty = tempfile::tempdir().unwrap();
        let missing = ["scsi host2 (mpt3sas, 0000:03:00.0) is scanning".to_owned()];
        let told = text(require(&node(json!({})), empty.path(), &missing));
        assert!(told.contains("nothing is erased") && told.contains(&missing[0]), "{told}");
        assert_eq!(text(require(&node(json!({})), empty.path(), &[])), "");
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
