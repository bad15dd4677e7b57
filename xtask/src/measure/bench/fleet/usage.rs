//! What processes use.

use std::fs;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::host::processor_time;

/// What processes have used so far, or in a while.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Usage {
    /// Seconds of a processor.
    pub(super) processor_seconds: f64,
    /// Bytes that were sent to disks: the database and its log.
    pub(super) written_bytes: u64,
    /// Memory now, in KiB.
    pub(super) resident_kib: u64,
}

impl Usage {
    /// That of processes, with their children.
    pub(super) fn of(processes: &[u32]) -> Result<Self> {
        let mut sum = Self::default();
        for process in processes {
            let one = Self::alone(*process)?;
            sum.processor_seconds += one.processor_seconds;
            sum.written_bytes += one.written_bytes;
            sum.resident_kib += one.resident_kib;
        }
        Ok(sum)
    }

    fn alone(process: u32) -> Result<Self> {
        let read = |name: &str| {
            let file = format!("/proc/{process}/{name}");
            fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))
        };
        let busy = processor_time::of(process)?;
        let line = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().trim_end_matches(" kB").trim().parse().ok()
        };
        let written = line(&read("io")?, "write_bytes:").context("no write_bytes")?;
        let resident = line(&read("status")?, "VmRSS:").context("no VmRSS")?;
        Ok(Self { processor_seconds: busy.as_secs_f64(), written_bytes: written, resident_kib: resident })
    }

    /// What was used since an earlier time; memory is that of now.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            processor_seconds: self.processor_seconds - before.processor_seconds,
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_uses_memory_and_what_it_used_before_does_not_count() {
        let own = Usage::of(&[std::process::id()]).unwrap();
        assert!(own.resident_kib > 100);
        let used = own.since(own);
        assert_eq!(
            (used.processor_seconds, used.written_bytes, used.resident_kib),
            (0.0, 0, own.resident_kib)
        );
        assert!(Usage::of(&[u32::MAX]).is_err());
    }
}
