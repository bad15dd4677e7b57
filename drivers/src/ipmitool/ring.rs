//! The log of a console, which never grows beyond a bound: a file, and the one before it beside it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The log.
#[derive(Debug)]
pub(super) struct Ring {
    path: PathBuf,
    file: File,
    length: u64,
    /// Longest length of one file, in bytes.
    limit: u64,
}

impl Ring {
    /// Continues the log at `path`, of which each file has at most `limit` bytes. Consoles may show secrets, so no one
    /// else can read it.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(super) fn open(path: PathBuf, limit: u64) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        let length = file.metadata()?.len();
        Ok(Self { path, file, length, limit })
    }

    /// Adds to it.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.length > 0 && self.length + bytes.len() as u64 > self.limit {
            fs::rename(&self.path, old(&self.path))?;
            *self = Self::open(self.path.clone(), self.limit)?;
        }
        self.length += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}

/// The file before that of a log.
pub(super) fn old(path: &Path) -> PathBuf {
    let mut old = path.as_os_str().to_owned();
    old.push(".old");
    old.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_log_never_grows_beyond_its_bound_and_is_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/console.log");
        for pass in 0..2 {
            let mut ring = Ring::open(path.clone(), 100).unwrap();
            for line in 0..100 {
                ring.write(format!("line {pass}{line:03}\n").as_bytes()).unwrap();
            }
        }
        let (now, before) = (fs::read_to_string(&path).unwrap(), fs::read_to_string(old(&path)).unwrap());
        assert!(now.len() <= 100 && before.len() <= 100, "{now} {before}");
        assert!(now.ends_with("line 1099\n"), "{now}");
        assert!(before.ends_with('\n') && now.starts_with("line "), "{before}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path().join("deep")).unwrap().count(), 2);
    }
}
