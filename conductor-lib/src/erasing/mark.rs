//! The mark that a node bears since it became available: whether its disks are proven to be erased.

use super::accept::EraseCertificate;
use super::certificate::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use time::OffsetDateTime;

/// The method that leaves the data where it is.
const METADATA: &str = "metadata";

/// Whether the disks of a machine are proven to be erased, since it became available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erasure {
    /// Whether certificates prove that all disks were erased which were not to be kept.
    pub is_proven: bool,
    /// Since when this is so.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The disks that were erased, by their serial numbers.
    #[serde(default)]
    pub erased: BTreeSet<String>,
    /// The disks that were to be kept, by their serial numbers.
    #[serde(default)]
    pub kept: BTreeSet<String>,
    /// Why it is not proven.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Erasure {
    /// Nothing is proven.
    pub(crate) fn not_proven(at: OffsetDateTime, reason: impl Into<String>) -> Self {
        let (erased, kept) = (BTreeSet::new(), BTreeSet::new());
        Self { is_proven: false, at, erased, kept, reason: Some(reason.into()) }
    }

    /// What the certificates of a cleaning prove.
    pub(crate) fn proven_by(certificates: &[EraseCertificate], at: OffsetDateTime) -> Self {
        // The strongest that became of each disk.
        let mut disks: BTreeMap<&str, Strength> = BTreeMap::new();
        for certificate in certificates {
            let strength = Strength::of(certificate);
            let strongest = disks.entry(&certificate.disk).or_insert(strength);
            *strongest = strength.max(*strongest);
        }
        let of = |strength| {
            let those = disks.iter().filter(move |(_, found)| **found == strength);
            those.map(|(disk, _)| (*disk).to_owned()).collect::<BTreeSet<_>>()
        };
        let (erased, kept, metadata) = (of(Strength::Data), of(Strength::Kept), of(Strength::Metadata));
        let reason = if disks.is_empty() {
            Some("the agent gave no certificates of erasure that its own certificate signs".to_owned())
        } else if !metadata.is_empty() {
            Some(format!("of these disks nothing but the metadata was erased: {}", listed(&metadata)))
        } else if erased.is_empty() {
            Some(format!("every disk was kept: {}", listed(&kept)))
        } else {
            None
        };
        Self { is_proven: reason.is_none(), at, erased, kept, reason }
    }
}

/// How much became of a disk, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Kept,
    Metadata,
    Data,
}

impl Strength {
    fn of(certificate: &EraseCertificate) -> Self {
        match (certificate.statement.verdict, certificate.statement.method.as_deref()) {
            (Verdict::Erased, Some(METADATA) | None) => Self::Metadata,
            (Verdict::Erased, Some(_)) => Self::Data,
            (Verdict::Kept | Verdict::Failed, _) => Self::Kept,
        }
    }
}

fn listed(disks: &BTreeSet<String>) -> String {
    disks.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Erasure {
    /// As an operator reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => write!(f, "not proven: {reason}"),
            None => {
                write!(f, "proven: {} erased", listed(&self.erased))?;
                if self.kept.is_empty() { Ok(()) } else { write!(f, ", {} kept", listed(&self.kept)) }
            }
        }
    }
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

    #[test]
    fn the_strongest_certificate_of_each_disk_decides() {
        let metadata = |disk| certificate(disk, "erase_devices_metadata", "erased", Some("metadata"));
        let data = |disk| certificate(disk, "erase_devices", "erased", Some("nvme-sanitize-crypto"));
        let kept = |disk| certificate(disk, "erase_devices", "kept", None);
        for (certificates, expected) in [
            (vec![], "not proven: the agent gave no certificates of erasure that its own certificate signs"),
            (vec![metadata("A"), data("A")], "proven: A erased"),
            (vec![data("A"), metadata("A")], "proven: A erased"),
            (vec![data("B"), data("A"), kept("K")], "proven: A, B erased, K kept"),
            (
                vec![data("A"), metadata("B"), metadata("C")],
                "not proven: of these disks nothing but the metadata was erased: B, C",
            ),
            (vec![kept("K")], "not proven: every disk was kept: K"),
        ] {
            let mark = Erasure::proven_by(&certificates, OffsetDateTime::UNIX_EPOCH);
            assert_eq!(mark.to_string(), expected);
            assert_eq!(mark.is_proven, expected.starts_with("proven"));
            let stored = serde_json::to_value(&mark).unwrap();
            assert_eq!(serde_json::from_value::<Erasure>(stored).unwrap(), mark);
        }
    }
}
