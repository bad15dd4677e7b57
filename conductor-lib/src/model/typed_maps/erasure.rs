//! The mark that a node has since it became available: whether its disks are proven to be erased.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use time::OffsetDateTime;

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
    /// Storage that the agent knows of and did not examine, in its words.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub not_examined: BTreeSet<String>,
    /// Why it is not proven.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Erasure {
    /// Nothing is proven.
    pub fn not_proven(at: OffsetDateTime, reason: impl Into<String>) -> Self {
        let (erased, kept, not_examined) = Default::default();
        Self { is_proven: false, at, erased, kept, not_examined, reason: Some(reason.into()) }
    }
}

impl fmt::Display for Erasure {
    /// As an operator reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => write!(f, "not proven: {reason}"),
            None => {
                write!(f, "proven: {} erased", listed(&self.erased))?;
                if !self.kept.is_empty() {
                    write!(f, ", {} kept", listed(&self.kept))?;
                }
                if !self.not_examined.is_empty() {
                    write!(f, "; not examined: {}", listed(&self.not_examined))?;
                }
                Ok(())
            }
        }
    }
}

fn listed(disks: &BTreeSet<String>) -> String {
    disks.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}
