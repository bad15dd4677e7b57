//! Strangers: clients without credentials, or with those of one agent, and services that are asked, which take what they
//! can get from a running `farrier serve`, a real agent or an operator's command.
//!
//! [`structure`], [`services`], [`ramdisk`] and [`operator`] send and answer JSON that is small as text and large as values.
//! [`shares`] takes connections, bodies, turns and transfers away from others. Each stranger gives one [`Row`]: the memory of
//! the process before and after, and the time that an honest client waits meanwhile.

mod agent;
pub mod conductor;
mod honest;
pub mod measure;
pub mod network;
pub mod operator;
pub mod peer;
pub mod ramdisk;
pub mod services;
pub mod shape;
pub mod shares;
pub mod structure;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use shape::Shape;
use std::path::Path;

/// How many KiB a stranger without credentials may add.
pub const WITHOUT_CREDENTIALS: u64 = 16 << 10;
/// How many KiB one may add who has the token of an agent, or whom a conductor was told to ask.
pub const WITH_A_TOKEN: u64 = 64 << 10;

/// What one stranger did, and what became of the process and of an honest client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Whom the stranger met: the conductor, an agent, or an operator's command.
    pub process: String,
    /// What the stranger did, in a few words; behind a colon, by which shape of JSON.
    pub stranger: String,
    /// How the stranger was answered.
    pub answer: String,
    /// The most memory of the process before, in KiB (`VmHWM`).
    pub before_kib: u64,
    /// The same afterwards.
    pub after_kib: u64,
    /// How many KiB the stranger may add.
    pub allowed_kib: u64,
    /// The longest time that an honest client waited for an answer before the stranger came, in milliseconds.
    pub alone_ms: f64,
    /// The same while the stranger was there.
    pub honest_ms: f64,
    /// The longest time that it may wait, in milliseconds.
    pub honest_limit_ms: f64,
    /// Why the stranger could not do what it does, if so.
    pub error: Option<String>,
}

impl Row {
    /// One of a stranger that could not be tried.
    fn failed(process: &str, stranger: String, error: &anyhow::Error) -> Self {
        Self { process: process.to_owned(), stranger, error: Some(format!("{error:#}")), ..Self::default() }
    }

    /// How many KiB the stranger has added.
    pub fn added_kib(&self) -> u64 {
        self.after_kib.saturating_sub(self.before_kib)
    }

    /// What is wrong with it, if so.
    pub fn fault(&self) -> Option<String> {
        let Self { process, stranger, allowed_kib, honest_ms, honest_limit_ms, answer, error, .. } = self;
        let stranger = format!("{process}, {stranger}");
        if let Some(error) = error {
            return Some(format!("{stranger}: {error}"));
        }
        let added = self.added_kib();
        if added > *allowed_kib {
            return Some(format!("{stranger}: {added} KiB more, not {allowed_kib} ({answer})"));
        }
        let waited = honest_ms > honest_limit_ms;
        waited.then(|| {
            format!(
                "{stranger}: an honest client waited {honest_ms:.0} ms, not {honest_limit_ms:.0} ({answer})"
            )
        })
    }
}

/// How many of them there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// One of each kind, in less than a minute.
    Quick,
    /// All.
    Whole,
}

impl Extent {
    fn shapes(self) -> &'static [Shape] {
        if self == Self::Quick { &Shape::ALL[..1] } else { &Shape::ALL[..] }
    }
}

/// The programs that strangers meet.
#[derive(Debug, Clone, Copy)]
pub struct Programs<'a> {
    /// `farrier`.
    pub farrier: &'a Path,
    /// `farrier-agent`.
    pub agent: &'a Path,
}

/// Lets strangers have their way whose JSON is large as values. Files are kept in a folder.
///
/// # Errors
///
/// A program did not start.
pub fn structures(programs: Programs<'_>, folder: &Path, extent: Extent) -> Result<Vec<Row>> {
    let shapes = extent.shapes();
    let mut rows = structure::rows(programs.farrier, &folder.join("structure"), shapes)?;
    rows.extend(services::rows(programs.farrier, &folder.join("services"), shapes)?);
    rows.extend(operator::rows(programs.farrier, shapes)?);
    rows.extend(ramdisk::rows(programs.agent, &folder.join("agent"), shapes)?);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_of_too_much_memory_and_of_too_long_a_wait() {
        let row = Row {
            process: "conductor".into(),
            stranger: "report: nests".into(),
            answer: "400".into(),
            before_kib: 1000,
            after_kib: 1100,
            allowed_kib: 100,
            alone_ms: 1.0,
            honest_ms: 10.0,
            honest_limit_ms: 10.0,
            error: None,
        };
        assert_eq!(row.fault(), None);
        assert!(Row { after_kib: 1101, ..row.clone() }.fault().unwrap().contains("101 KiB more"));
        assert!(Row { honest_ms: 11.0, ..row.clone() }.fault().unwrap().contains("waited 11 ms"));
        assert!(Row { error: Some("no answer".into()), ..row }.fault().unwrap().contains("no answer"));
    }
}
