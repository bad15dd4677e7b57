//! The one statement for the machine: what an erase step examined, and what it could not see.
//!
//! A certificate is about one disk, and says nothing of a disk that has none. So the agent signs beside them which disks
//! and controllers it examined, which storage no block device shows, and which controllers have no driver. Names in the
//! statement change only with a note in the changelog.

use super::certificate::{Record, VERSION, timestamp};
use super::unseen::{Examination, Unseen};
use crate::manager::StepCall;
use serde_json::{Value, json};
use time::OffsetDateTime;

/// The key of the statement in the result of a step, beside the device nodes of the disks.
pub const MACHINE: &str = "machine";

/// What is signed of the machine of `call`, whose disks have the `records`.
pub fn statement(call: &StepCall<'_>, records: &[Record], found: &Examination) -> Value {
    let texts = |refuses: bool| {
        let unseen = found.unseen.iter().chain(&found.left_alone.unseen);
        unseen.filter(|one| one.storage.refuses() == refuses).map(Unseen::to_string).collect::<Vec<_>>()
    };
    let without_driver = found.without_driver.iter().chain(&found.left_alone.without_driver);
    json!({
        "version": VERSION,
        "node": call.node.uuid,
        "step": call.step,
        "nonce": call.nonce,
        "disks": records.iter().map(Record::examined).collect::<Vec<_>>(),
        "examined": found.examined,
        "not_seen": texts(true),
        "not_examined": texts(false),
        "without_driver": without_driver.map(ToString::to_string).collect::<Vec<_>>(),
        "finished_at": timestamp(OffsetDateTime::now_utc()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::EraseError;
    use super::super::certificate::Verdict;
    use super::super::method::Method;
    use super::super::unseen::Storage;
    use super::*;
    use crate::fake_host::FakeHost;
    use farrier_disk::BlockDevice;
    use farrier_protocol::lookup::Node;
    use farrier_protocol::step::Phase;
    use serde_json::Map;
    use std::fs;

    fn disk(sysfs: &std::path::Path, name: &str) -> BlockDevice {
        let folder = sysfs.join("block").join(name);
        fs::create_dir_all(folder.join("queue")).unwrap();
        for (file, text) in [("size", "16"), ("queue/logical_block_size", "512"), ("serial", name)] {
            fs::write(folder.join(file), text).unwrap();
        }
        BlockDevice::describe(sysfs, name).unwrap()
    }

    fn unseen(storage: Storage, text: &str) -> Unseen {
        Unseen { storage, names: vec![text.to_owned()], text: text.to_owned() }
    }

    #[test]
    fn g03_g09_one_statement_says_what_was_examined_and_what_was_not_and_metadata_is_never_called_erased() {
        let sysfs = tempfile::tempdir().unwrap();
        let records = [
            ("vda", Ok(Verdict::Erased(Method::Overwrite))),
            ("vdb", Ok(Verdict::Erased(Method::Metadata))),
            ("vdc", Ok(Verdict::Kept("on the list of skipped disks".to_owned()))),
            ("vdd", Err(EraseError::ReadOnly)),
        ]
        .map(|(name, outcome)| Record::begin(&disk(sysfs.path(), name)).finish(outcome));
        let found = Examination {
            examined: vec!["nvme0: 1 namespace".to_owned()],
            unseen: vec![
                unseen(Storage::DetachedNamespace, "namespace 2"),
                unseen(Storage::ScsiMedium, "tape 1:0:0:0"),
            ],
            ..Examination::default()
        };
        let found = found.without(|name| name == "namespace 2");
        let node = Node { uuid: "1f4c".to_owned(), ..Node::default() };
        let call = StepCall {
            phase: Phase::Clean,
            step: "erase_devices",
            nonce: Some("n1"),
            node: &node,
            record: &Value::Null,
            ports: &Value::Null,
            arguments: &Map::new(),
            host: &FakeHost::default(),
        };
        let statement = statement(&call, &records, &found);
        let verdicts: Vec<_> =
            statement["disks"].as_array().unwrap().iter().map(|disk| &disk["verdict"]).collect();
        assert_eq!(verdicts, ["erased", "metadata_removed", "kept", "failed"]);
        for (key, expected) in [
            ("version", json!(2)),
            ("node", json!("1f4c")),
            ("nonce", json!("n1")),
            ("examined", json!(["nvme0: 1 namespace"])),
            ("not_seen", json!(["namespace 2"])),
            ("not_examined", json!(["tape 1:0:0:0"])),
            ("without_driver", json!([])),
        ] {
            assert_eq!(statement[key], expected, "{key}");
        }
        for (record, disk) in records.iter().zip(statement["disks"].as_array().unwrap()) {
            assert_eq!(record.statement("1f4c", "erase_devices")["verdict"], disk["verdict"]);
        }
    }
}
