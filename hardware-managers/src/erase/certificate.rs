//! What is put on record about each disk.
//!
//! The statement is JSON that lasts: names in it change only with a note in the changelog. It holds
//! the outcome and how it came about; the agent signs it.

use super::error::EraseError;
use super::method::Method;
use farrier_disk::BlockDevice;
use farrier_disk::guard::Beside;
use farrier_protocol::inventory::Disk;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What erased a part of a disk that no volume covers.
const ITSELF: &str = "itself";
/// Version of the statement.
pub(super) const VERSION: u32 = 2;

/// The course of one disk's erasure.
#[derive(Debug)]
pub struct Record {
    /// Path of the device node.
    pub device: String,
    /// What the disk says it can do, by the names of the standard.
    pub capabilities: BTreeMap<&'static str, u64>,
    /// Questions about what is out of reach that the disk did not answer.
    pub unanswered: Vec<String>,
    /// How many places were read back.
    pub samples: usize,
    /// What was erased of a disk that volumes of the node cover, and with which of them.
    pub beside: Option<Beside>,
    disk: Disk,
    attempts: Vec<(Method, Option<String>)>,
    started: OffsetDateTime,
    finished: OffsetDateTime,
    verdict: Verdict,
}

/// What became of a disk.
#[derive(Debug)]
pub enum Verdict {
    /// The method has done its work. [`Method::Metadata`] leaves the data where it is; of the others the erasure is
    /// proven.
    Erased(Method),
    /// It was not to be erased, for this reason.
    Kept(String),
    /// It was not erased.
    Failed(EraseError),
}

impl Verdict {
    /// Name in statements. The removal of metadata is never called an erasure.
    fn name(&self) -> &'static str {
        match self {
            Self::Erased(Method::Metadata) => "metadata_removed",
            Self::Erased(_) => "erased",
            Self::Kept(_) => "kept",
            Self::Failed(_) => "failed",
        }
    }
}

impl Record {
    /// Begins the record of a disk, which is a failure until something else is shown.
    pub fn begin(device: &BlockDevice) -> Self {
        let now = OffsetDateTime::now_utc();
        Self {
            device: device.disk.name.clone(),
            capabilities: BTreeMap::new(),
            unanswered: Vec::new(),
            samples: 0,
            beside: None,
            disk: device.disk.clone(),
            attempts: Vec::new(),
            started: now,
            finished: now,
            verdict: Verdict::Failed(EraseError::Defect),
        }
    }

    /// The record of a disk that is kept.
    pub fn kept(device: &BlockDevice, reason: String) -> Self {
        Self::begin(device).finish(Ok(Verdict::Kept(reason)))
    }

    /// The record of a disk that was not erased.
    pub fn failed(device: &BlockDevice, error: EraseError) -> Self {
        Self::begin(device).finish(Err(error))
    }

    /// Notes that a method was tried, and what went wrong.
    pub fn tried(&mut self, method: Method, error: Option<&EraseError>) {
        self.attempts.push((method, error.map(ToString::to_string)));
    }

    /// Ends the record.
    pub fn finish(self, outcome: Result<Verdict, EraseError>) -> Self {
        let verdict = outcome.unwrap_or_else(Verdict::Failed);
        Self { finished: OffsetDateTime::now_utc(), verdict, ..self }
    }

    /// What is signed.
    pub fn statement(&self, node: impl Display, step: &str) -> Value {
        let (method, reason) = match &self.verdict {
            Verdict::Erased(method) => (Some(method.name()), None),
            Verdict::Kept(reason) => (None, Some(reason.clone())),
            Verdict::Failed(error) => (None, Some(error.to_string())),
        };
        let attempts =
            self.attempts.iter().map(|(method, error)| json!({"method": method.name(), "error": error}));
        let mut statement = json!({
            "version": VERSION,
            "node": node.to_string(),
            "step": step,
            "device": self.device,
            "vendor": self.disk.vendor,
            "model": self.disk.model,
            "serial": self.disk.serial,
            "wwn": self.disk.wwn,
            "size_bytes": self.disk.size,
            "verdict": self.verdict.name(),
            "method": method,
            "reason": reason,
            "capabilities": self.capabilities,
            "unanswered": self.unanswered,
            "attempts": attempts.collect::<Vec<_>>(),
            "samples": self.samples,
            "started_at": timestamp(self.started),
            "finished_at": timestamp(self.finished),
        });
        if let (Some(beside), Some(statement)) = (&self.beside, statement.as_object_mut()) {
            statement.insert("ranges".to_owned(), ranges(beside));
        }
        statement
    }

    /// The disk in the statement for the machine.
    pub fn examined(&self) -> Value {
        json!({
            "device": self.device, "serial": self.disk.serial, "wwn": self.disk.wwn, "size_bytes": self.disk.size,
            "verdict": self.verdict.name(),
        })
    }

    /// Puts the outcome and the statement in the log.
    pub fn log(&self, statement: &Value) {
        let disk = &self.device;
        match &self.verdict {
            Verdict::Failed(error) => tracing::error!(disk, %statement, "not erased: {error}"),
            Verdict::Erased(Method::Metadata) => tracing::info!(disk, %statement, "metadata removed"),
            Verdict::Erased(method) => tracing::info!(disk, %statement, "erased: {method}"),
            Verdict::Kept(reason) => tracing::info!(disk, %statement, "kept: {reason}"),
        }
    }

    /// Why the disk was not erased, with its name; nothing when it was or should not be.
    pub fn failure(&self) -> Option<String> {
        match &self.verdict {
            // These errors begin with the name themselves.
            Verdict::Failed(error @ EraseError::Disk(_)) => Some(error.to_string()),
            Verdict::Failed(error) => Some(format!("{}: {error}", self.device)),
            Verdict::Erased(_) | Verdict::Kept(_) => None,
        }
    }

    /// The outcome in a few words.
    pub fn summary(&self) -> String {
        match &self.verdict {
            Verdict::Erased(Method::Metadata) => format!("the metadata of {} was removed", self.device),
            Verdict::Erased(method) => format!("{} was erased ({method})", self.device),
            Verdict::Kept(reason) => format!("{} was kept ({reason})", self.device),
            Verdict::Failed(_) => format!("{} was not erased", self.device),
        }
    }
}

/// The parts of a disk, in the order of their places: erased by itself, with a volume, or kept.
fn ranges(beside: &Beside) -> Value {
    let part = |range: Range<u64>, erased_by: Option<&str>| json!({"start": range.start, "bytes": range.end - range.start, "erased_by": erased_by});
    let doomed = beside.doomed.iter().map(|range| (range.start, part(range, Some(ITSELF))));
    let covered = beside.covered.iter().map(|(by, range)| (range.start, part(range.clone(), Some(by))));
    let kept = beside.kept.iter().map(|range| (range.start, part(range, None)));
    let mut parts: Vec<_> = doomed.chain(covered).chain(kept).collect();
    parts.sort_by_key(|(start, _)| *start);
    parts.into_iter().map(|(_, part)| part).collect()
}

pub(super) fn timestamp(time: OffsetDateTime) -> String {
    // Only years beyond 9999 cannot be written.
    time.replace_nanosecond(0).unwrap_or(time).format(&Rfc3339).unwrap_or_default()
}
