//! What can be had of a machine that stays silent: the log of its controller, the end of its console, and what the
//! agent's doctor left in either, or with the DHCP server.
//!
//! It is gathered when an operation gives up its agent, within a time that does not hold the failure up for long, and is kept with the
//! node until its machine boots the ramdisk again. Where something in it names the cause, that is told first: what
//! names causes is one table.

mod console_patterns;
mod doctor_report;

pub(crate) use console_patterns::cause;
pub(crate) use doctor_report::is_host_name as is_of_doctor;

use farrier_conductor::model::LogEntry;
use serde::{Deserialize, Serialize};
use std::fmt;
use time::OffsetDateTime;

/// Most entries of a controller's log that are kept, the latest ones.
pub(crate) const MOST_ENTRIES: usize = 40;

/// Most lines of a console that are kept, the last ones.
pub(crate) const MOST_LINES: usize = 40;

/// Longest text of one of them, in characters.
pub(crate) const LONGEST: usize = 300;

/// What could be had of a machine that stayed silent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// When it was gathered.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// Why the machine is silent, where something names that.
    pub cause: Option<Cause>,
    /// The latest entries of its controller's log, the oldest first.
    pub log: Vec<LogEntry>,
    /// The end of its console.
    pub console: Vec<String>,
    /// Name of the file with what was on its screen, beside the logs of its ramdisks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screenshot: Option<String>,
    /// What could not be had, and why.
    pub missing: Vec<String>,
}

/// Why a machine is silent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// What is the matter: the end of a sentence.
    pub what: String,
    /// What names it.
    pub named_by: String,
    /// What to do next: a sentence without its end.
    pub next: String,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}); {}", self.what, self.named_by, self.next)
    }
}
