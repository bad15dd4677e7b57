//! A ramdisk in which a program of its own looks at the agent.

use crate::machine::console::Console;
use crate::ramdisk::{self, Addition};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// A deploy step after which the agent is looked at every second.
pub const STEP: &str = "watch_agent";

const MANAGER: &str = include_str!("witness.sh");
/// What begins its lines on the console.
const LINE: &str = "witness: ";

/// What was seen of the agent at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sight {
    /// Resident memory at most since the last sight, in bytes.
    pub peak: u64,
    /// Resident memory, in bytes.
    pub resident: u64,
    /// Connections that are open at its port.
    pub open: u64,
}

/// Builds the ramdisk with the manager of this step below `folder`.
///
/// # Errors
///
/// As [`ramdisk::build`].
pub fn ramdisk(folder: &Path) -> Result<PathBuf> {
    ramdisk::build(folder, &[Addition::HardwareManager("witness", MANAGER)])
}

/// All that was seen so far.
pub fn sights(console: &Console) -> Vec<Sight> {
    console.text().lines().filter_map(sight).collect()
}

fn sight(line: &str) -> Option<Sight> {
    let (_, figures) = line.split_once(LINE)?;
    let mut figures = figures.split_whitespace().map(str::parse::<u64>);
    let mut next = || figures.next()?.ok();
    Some(Sight { peak: next()? << 10, resident: next()? << 10, open: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_are_read() {
        let expected = Sight { peak: 2048, resident: 1024, open: 64 };
        for (line, expected) in [
            ("witness: 2 1 64", Some(expected)),
            ("[  12.3] witness: 2 1 64\r", Some(expected)),
            ("witness: 2 1", None),
            ("2 1 64", None),
        ] {
            let expected: Option<Sight> = expected;
            assert_eq!(sight(line), expected, "{line}");
        }
    }
}
