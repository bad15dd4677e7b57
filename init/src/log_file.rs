//! The log of every process of this boot, kept for collection (F46).
//!
//! Init, agent and DHCP handler append to one file on a memory file system. It is bounded: a full
//! file becomes the older half and a new one begins.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where the log lies in a ramdisk.
pub const DEFAULT_PATH: &str = "/run/farrier/agent.log";

/// Bytes of each half.
const HALF: u64 = 512 << 10;

/// A bounded log file.
#[derive(Debug, Clone)]
pub struct LogFile {
    path: PathBuf,
}

impl LogFile {
    /// The log at a path; it need not exist.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Appends whole lines, as bytes.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn append(&self, lines: &[u8]) -> io::Result<()> {
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        let mut file = self.open()?;
        if file.metadata()?.len() >= HALF {
            self.keep_as_older(&file)?;
            file = self.open()?;
        }
        // One call, so that lines of two processes do not mix.
        file.write_all(lines)
    }

    fn open(&self) -> io::Result<File> {
        OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)
    }

    /// Makes the full file the older half, unless another process does or has: a new file is not moved over the half that
    /// was full.
    fn keep_as_older(&self, full: &File) -> io::Result<()> {
        let is_in_place = |facts: Metadata| full.metadata().is_ok_and(|full| full.ino() == facts.ino());
        match full.try_lock().is_ok() && fs::metadata(&self.path).is_ok_and(is_in_place) {
            true => fs::rename(&self.path, self.older()),
            false => Ok(()),
        }
    }

    /// Everything that is kept, the oldest line first; empty without a log.
    pub fn read(&self) -> Vec<u8> {
        [self.older(), self.path.clone()].iter().flat_map(|path| fs::read(path).unwrap_or_default()).collect()
    }

    fn older(&self) -> PathBuf {
        self.path.with_extension("log.1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f46_of_two_processes_that_find_it_full_one_moves_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.log");
        let fill = || {
            let log = LogFile::at(&path);
            for _ in 0..4000 {
                log.append(&[b'x'; 4096]).unwrap();
                let older = fs::metadata(log.older()).map(|facts| facts.len());
                assert!(older.is_err() || older.is_ok_and(|length| length >= HALF), "most of it is lost");
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(fill))));
    }

    #[test]
    fn f46_the_newest_lines_are_kept_as_bytes_and_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let log = LogFile::at(&directory.path().join("farrier/agent.log"));
        assert_eq!(log.read(), b"");
        let line = |i: u32| [format!("{i:06} ").as_bytes(), &[0xff; 1017], b"\n"].concat();
        for i in 0..2000 {
            log.append(&line(i)).unwrap();
        }
        let kept = log.read();
        assert!((HALF..=2 * HALF + 1024).contains(&(kept.len() as u64)), "{}", kept.len());
        assert!(kept.ends_with(&line(1999)));
        let numbers: Vec<_> = kept.chunks(1025).map(|line| line[..6].to_vec()).collect();
        assert!(numbers.is_sorted());
    }
}
