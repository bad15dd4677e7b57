//! The log of every process of this boot, kept for collection (F46).
//!
//! Init, agent and DHCP handler append to one file on a memory file system. It is bounded: a full
//! file becomes the older half and a new one begins.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
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
        if fs::metadata(&self.path).is_ok_and(|metadata| metadata.len() >= HALF) {
            fs::rename(&self.path, self.older())?;
        }
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        // One call, so that lines of two processes do not mix.
        file.write_all(lines)
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
