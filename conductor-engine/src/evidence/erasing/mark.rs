//! What certificates of erasure and the last inspection prove of the disks of a node.

use crate::evidence::erasing::accept::EraseCertificate;
use crate::evidence::erasing::inspected::InspectedDisk;
use crate::evidence::erasing::statement::{DiskStatement, MachineStatement, Statement, Verdict};
use farrier_conductor::model::Erasure;
use std::collections::{BTreeMap, BTreeSet};
use time::OffsetDateTime;

/// The method that leaves the data where it is.
const METADATA: &str = "metadata";

/// What the certificates of a cleaning prove of a machine on which the last inspection saw the disks `inspected`.
pub fn proven_by(
    certificates: &[EraseCertificate],
    inspected: &[InspectedDisk],
    at: OffsetDateTime,
) -> Erasure {
    // The strongest that became of each disk.
    let mut disks: BTreeMap<&str, Strength> = BTreeMap::new();
    let mut machine = Vec::new();
    for certificate in certificates {
        match &certificate.statement {
            Statement::Machine(statement) => machine.push(statement),
            Statement::Disk(statement) => {
                let strength = Strength::of(statement);
                let strongest = disks.entry(&certificate.disk).or_insert(strength);
                *strongest = strength.max(*strongest);
            }
        }
    }
    let of = |strength| {
        let those = disks.iter().filter(move |(_, found)| **found == strength);
        those.map(|(disk, _)| (*disk).to_owned()).collect::<BTreeSet<_>>()
    };
    let (erased, kept, metadata) = (of(Strength::Data), of(Strength::Kept), of(Strength::Metadata));
    let reason = if disks.is_empty() {
        Some("the agent gave no certificates of erasure that its own certificate signs".to_owned())
    } else if !metadata.is_empty() {
        Some(format!("of these disks nothing but the metadata was removed: {}", listed(&metadata)))
    } else if erased.is_empty() {
        Some(format!("every disk was kept: {}", listed(&kept)))
    } else {
        incompleteness(&machine, inspected)
    };
    let not_examined = machine.iter().flat_map(|statement| statement.not_examined.iter().cloned());
    let not_examined = not_examined.collect();
    Erasure { is_proven: reason.is_none(), at, erased, kept, not_examined, reason }
}

/// Why the statements for a machine do not cover all of it; nothing when they do.
fn incompleteness(machine: &[&MachineStatement], inspected: &[InspectedDisk]) -> Option<String> {
    if machine.is_empty() {
        return Some(
            "the agent signed no statement for the machine; use a ramdisk of this version".to_owned(),
        );
    }
    let all = |of: fn(&MachineStatement) -> &Vec<String>| {
        machine.iter().flat_map(|statement| of(statement).iter().cloned()).collect::<BTreeSet<_>>()
    };
    let (without_driver, not_seen) =
        (all(|statement| &statement.without_driver), all(|statement| &statement.not_seen));
    if !without_driver.is_empty() {
        return Some(format!("controllers had no driver: {}", listed(&without_driver)));
    }
    if !not_seen.is_empty() {
        return Some(format!("storage was left alone that no block device shows: {}", listed(&not_seen)));
    }
    let is_examined =
        |disk: &&InspectedDisk| machine.iter().flat_map(|statement| &statement.disks).any(|one| disk.is(one));
    let missing = inspected.iter().filter(|disk| !is_examined(disk)).map(ToString::to_string);
    let missing: BTreeSet<_> = missing.collect();
    (!missing.is_empty()).then(|| {
        let missing = listed(&missing);
        format!("disks of the last inspection were not seen: {missing}; find them, or inspect the node again")
    })
}

/// How much became of a disk, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Kept,
    Metadata,
    Data,
}

impl Strength {
    fn of(statement: &DiskStatement) -> Self {
        match (statement.verdict, statement.method.as_deref()) {
            // Agents of the first version call it erased.
            (Verdict::MetadataRemoved, _) | (Verdict::Erased, Some(METADATA) | None) => Self::Metadata,
            (Verdict::Erased, Some(_)) => Self::Data,
            (Verdict::Kept | Verdict::Failed, _) => Self::Kept,
        }
    }
}

fn listed(disks: &BTreeSet<String>) -> String {
    disks.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::certificate::tests::statement;
    use super::*;
    use serde_json::json;

    fn certificate(disk: &str, step: &str, verdict: &str, method: Option<&str>) -> EraseCertificate {
        let mut statement = statement("n", disk);
        (statement["step"], statement["verdict"]) = (json!(step), json!(verdict));
        statement["method"] = json!(method);
        EraseCertificate {
            disk: disk.into(),
            statement: serde_json::from_value(statement).unwrap(),
            agent: String::new(),
            accepted_at: OffsetDateTime::UNIX_EPOCH,
            certificate: String::new(),
        }
    }

    fn machine(disks: &[&str], not_examined: &[&str], without_driver: &[&str]) -> EraseCertificate {
        let examined = |serial: &&str| json!({"device": serial, "serial": serial, "verdict": "erased"});
        let statement = json!({
            "version": 2, "node": "n", "step": "erase_devices", "finished_at": "2026-11-26T03:10:00Z",
            "disks": disks.iter().map(examined).collect::<Vec<_>>(), "not_examined": not_examined,
            "without_driver": without_driver,
        });
        EraseCertificate {
            disk: super::super::MACHINE.into(),
            statement: serde_json::from_value(statement).unwrap(),
            ..certificate("", "erase_devices", "erased", None)
        }
    }

    fn inspected(serials: &[&str]) -> Vec<InspectedDisk> {
        let disk =
            |serial: &&str| InspectedDisk { serial: Some((*serial).into()), ..InspectedDisk::default() };
        serials.iter().map(disk).collect()
    }

    fn mark(certificates: &[EraseCertificate], inspected: &[InspectedDisk]) -> String {
        let mark = proven_by(certificates, inspected, OffsetDateTime::UNIX_EPOCH);
        assert_eq!(mark.is_proven, mark.to_string().starts_with("proven"));
        let stored = serde_json::to_value(&mark).unwrap();
        assert_eq!(serde_json::from_value::<Erasure>(stored).unwrap(), mark);
        mark.to_string()
    }

    #[test]
    fn the_strongest_certificate_of_each_disk_decides() {
        let old = |disk| certificate(disk, "erase_devices_metadata", "erased", Some("metadata"));
        let metadata =
            |disk| certificate(disk, "erase_devices_metadata", "metadata_removed", Some("metadata"));
        let data = |disk| certificate(disk, "erase_devices", "erased", Some("nvme-sanitize-crypto"));
        let kept = |disk| certificate(disk, "erase_devices", "kept", None);
        let all = || machine(&["A", "B", "C", "K"], &[], &[]);
        for (certificates, expected) in [
            (vec![], "not proven: the agent gave no certificates of erasure that its own certificate signs"),
            (
                vec![all()],
                "not proven: the agent gave no certificates of erasure that its own certificate signs",
            ),
            (vec![metadata("A"), data("A"), all()], "proven: A erased"),
            (vec![data("A"), metadata("A"), all()], "proven: A erased"),
            (vec![data("B"), data("A"), kept("K"), all()], "proven: A, B erased, K kept"),
            (
                vec![data("A"), metadata("B"), old("C"), all()],
                "not proven: of these disks nothing but the metadata was removed: B, C",
            ),
            (vec![kept("K"), all()], "not proven: every disk was kept: K"),
        ] {
            assert_eq!(mark(&certificates, &[]), expected);
        }
    }

    #[test]
    fn g03_disks_are_proven_erased_only_where_a_statement_covers_the_machine() {
        let data = certificate("A", "erase_devices", "erased", Some("overwrite"));
        for (statement, expected) in [
            (
                None,
                "not proven: the agent signed no statement for the machine; use a ramdisk of this version",
            ),
            (Some(machine(&["A"], &[], &[])), "proven: A erased"),
            (Some(machine(&["A"], &["a tape"], &[])), "proven: A erased; not examined: a tape"),
            (
                Some(machine(&["A"], &[], &["controller 0000:03:00.0"])),
                "not proven: controllers had no driver: controller 0000:03:00.0",
            ),
        ] {
            let certificates: Vec<_> = std::iter::once(data.clone()).chain(statement).collect();
            assert_eq!(mark(&certificates, &inspected(&["A"])), expected);
        }
    }

    #[test]
    fn e15_a_disk_of_the_last_inspection_that_no_agent_examined_is_missed() {
        let data = certificate("A", "erase_devices", "erased", Some("overwrite"));
        let certificates = [data, machine(&["A"], &[], &[])];
        assert_eq!(
            mark(&certificates, &inspected(&["A", "B"])),
            "not proven: disks of the last inspection were not seen: B; find them, or inspect the node again"
        );
        assert_eq!(mark(&certificates, &inspected(&[])), "proven: A erased");
    }
}
