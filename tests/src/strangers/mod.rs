//! Strangers: clients without credentials, or with those of one agent, that take what they can get from a running
//! `farrier serve`.
//!
//! [`structure`] sends and answers JSON that is small as text and large as values. [`shares`] takes connections, bodies,
//! turns and transfers away from others. Each stranger gives one [`Row`]: the memory of the conductor before and after, and
//! the time that an honest client waits meanwhile.

mod agent;
pub mod conductor;
pub mod network;
pub mod shares;
pub mod structure;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What one stranger did, and what became of the conductor and of an honest client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What the stranger did, in a few words.
    pub stranger: String,
    /// How the stranger was answered.
    pub answer: String,
    /// The most memory of the conductor's process before, in KiB (`VmHWM`).
    pub before_kib: u64,
    /// The same afterwards.
    pub after_kib: u64,
    /// How many KiB the stranger may add.
    pub allowed_kib: u64,
    /// The longest time that an honest client waited for an answer meanwhile, in milliseconds.
    pub honest_ms: f64,
    /// The longest time that it may wait, in milliseconds.
    pub honest_limit_ms: f64,
}

impl Row {
    /// What is wrong with it, if so.
    pub fn fault(&self) -> Option<String> {
        let Self { stranger, before_kib, after_kib, allowed_kib, honest_ms, honest_limit_ms, answer } = self;
        let added = after_kib.saturating_sub(*before_kib);
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

/// Lets all strangers have their way with a conductor of this program, which keeps its files in a folder.
///
/// # Errors
///
/// A conductor did not start, or a stranger could not do what it does.
pub fn rows(program: &Path, folder: &Path, extent: Extent) -> Result<Vec<Row>> {
    let mut rows = structure::rows(program, &folder.join("structure"), extent)?;
    rows.extend(shares::rows(program, &folder.join("shares"), extent)?);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_of_too_much_memory_and_of_too_long_a_wait() {
        let row = Row {
            stranger: "a nest".into(),
            answer: "400".into(),
            before_kib: 1000,
            after_kib: 1100,
            allowed_kib: 100,
            honest_ms: 10.0,
            honest_limit_ms: 10.0,
        };
        assert_eq!(row.fault(), None);
        assert!(Row { after_kib: 1101, ..row.clone() }.fault().unwrap().contains("101 KiB more"));
        assert!(Row { honest_ms: 11.0, ..row }.fault().unwrap().contains("waited 11 ms"));
    }
}
