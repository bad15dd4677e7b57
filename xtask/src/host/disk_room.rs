//! How much room tests leave on the disks that they write to: where none is left, they fail and name something else.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use nix::sys::statvfs::statvfs;
use serde::Serialize;

const MIB: u64 = 1 << 20;
/// With less room on the disk of a folder nothing is begun, in MiB: so much do tests hold at a time.
const NEEDED_MIB: u64 = 7 << 10;
/// With less room left something may have found none: files of tests come and go between two looks. In MiB.
const SCARCE_MIB: u64 = 1 << 10;
const PAUSE: Duration = Duration::from_secs(2);

/// The room on the disk of a folder.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Room {
    /// The folder.
    folder: PathBuf,
    /// What was left at the start, in MiB.
    start_mib: u64,
    /// The least that was left, in MiB.
    least_mib: u64,
}

impl Room {
    fn of(folder: &Path) -> Result<Self> {
        let mib = free_mib(folder)?;
        Ok(Self { folder: folder.to_owned(), start_mib: mib, least_mib: mib })
    }

    fn note(&mut self, mib: u64) {
        self.least_mib = self.least_mib.min(mib);
    }

    fn suffices(&self) -> Result<()> {
        let Self { folder, start_mib, .. } = self;
        ensure!(
            *start_mib >= NEEDED_MIB,
            "the disk of {} has room for {start_mib} MiB, and tests need {NEEDED_MIB}: make some, or set TMPDIR or \
             CARGO_TARGET_DIR to a folder elsewhere",
            folder.display()
        );
        Ok(())
    }
}

impl fmt::Display for Room {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { folder, start_mib, least_mib } = self;
        write!(out, "{}: {start_mib} MiB of room at the start, {least_mib} at the least", folder.display())?;
        if *least_mib < SCARCE_MIB {
            write!(out, ", so tests may have failed for want of it")?;
        }
        Ok(())
    }
}

/// Looks at the room of folders until it is told to end.
#[derive(Debug)]
pub struct Watch {
    end: Sender<()>,
    rooms: JoinHandle<Vec<Room>>,
}

impl Watch {
    /// Begins, where there is enough. Of folders on one disk the first stands for all.
    ///
    /// # Errors
    ///
    /// There is not, or a folder is missing.
    pub fn start(folders: &[&Path]) -> Result<Self> {
        let mut rooms = BTreeMap::new();
        for folder in folders {
            let room = Room::of(folder)?;
            room.suffices()?;
            rooms.entry(folder.metadata()?.dev()).or_insert(room);
        }
        let (end, ended) = mpsc::channel();
        let look = move || {
            let mut rooms: Vec<_> = rooms.into_values().collect();
            while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                for room in &mut rooms {
                    // What cannot be told now is at the next look.
                    if let Ok(mib) = free_mib(&room.folder) {
                        room.note(mib);
                    }
                }
            }
            rooms
        };
        Ok(Self { end, rooms: thread::spawn(look) })
    }

    /// Ends, and tells what it saw.
    ///
    /// # Errors
    ///
    /// It panicked.
    pub fn end(self) -> Result<Vec<Room>> {
        drop(self.end);
        self.rooms.join().map_err(|_| anyhow!("a thread panicked"))
    }
}

/// What a program may still write to the disk of a folder.
fn free_mib(folder: &Path) -> Result<u64> {
    let found = statvfs(folder).with_context(|| format!("cannot tell the room of {}", folder.display()))?;
    Ok(found.blocks_available() * found.fragment_size() / MIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_names_the_folder_and_whether_there_was_enough() {
        for (start_mib, least_mib, is_enough, may_have_failed) in [
            (NEEDED_MIB, SCARCE_MIB, true, false),
            (NEEDED_MIB, SCARCE_MIB - 1, true, true),
            (NEEDED_MIB - 1, 0, false, true),
        ] {
            let room = Room { folder: "/x".into(), start_mib, least_mib };
            let refused = room.suffices().err().map(|error| error.to_string());
            assert_eq!(refused.is_none(), is_enough, "{refused:?}");
            assert!(refused.is_none_or(|text| text.starts_with("the disk of /x has room for")));
            assert_eq!(room.to_string().contains("for want of it"), may_have_failed, "{room}");
        }
    }

    #[test]
    fn the_least_is_kept_and_the_start_stays() {
        let mut room = Room { folder: "/x".into(), start_mib: 9, least_mib: 9 };
        [11, 5, 7].into_iter().for_each(|mib| room.note(mib));
        assert_eq!((room.start_mib, room.least_mib), (9, 5));
    }

    #[test]
    fn a_folder_that_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Watch::start(&[&folder.path().join("missing")]).unwrap_err().to_string();
        assert!(error.contains("missing"), "{error}");
    }
}
