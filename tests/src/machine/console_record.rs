//! Keeps what a machine says over all its boots, where each of them begins a new log of its console.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const POLL: Duration = Duration::from_millis(20);

/// Somebody who writes down what stands in a log, until this is dropped.
#[derive(Debug)]
pub struct ConsoleRecord {
    /// Dropped before the thread is waited for.
    goes_on: Option<Sender<()>>,
    writer: Option<JoinHandle<io::Result<()>>>,
}

impl ConsoleRecord {
    /// Appends to `record` what is written to `log`, and to each file that takes the place of that one.
    ///
    /// # Errors
    ///
    /// The record cannot be written.
    pub fn of(log: &Path, record: &Path) -> Result<Self> {
        let to = File::options().create(true).append(true).open(record);
        let to = to.with_context(|| format!("cannot write {}", record.display()))?;
        let (goes_on, ends) = mpsc::channel();
        let mut pages = Pages { log: log.to_owned(), open: None, to };
        let writer = thread::spawn(move || {
            while ends.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
                pages.turn()?;
            }
            pages.turn()
        });
        Ok(Self { goes_on: Some(goes_on), writer: Some(writer) })
    }
}

impl Drop for ConsoleRecord {
    fn drop(&mut self) {
        self.goes_on = None;
        if let Some(writer) = self.writer.take() {
            // Whoever misses a line in the record says so.
            writer.join().ok();
        }
    }
}

/// The files that were a log one after the other.
struct Pages {
    log: PathBuf,
    /// The one that is read. While it is open no other file has its number.
    open: Option<File>,
    to: File,
}

impl Pages {
    /// Reads on, to the end of the file that is the log now. Nobody writes to one that was put aside.
    fn turn(&mut self) -> io::Result<()> {
        let number = |file: &File| file.metadata().ok().map(|metadata| metadata.ino());
        let current = fs::metadata(&self.log).ok().map(|metadata| metadata.ino());
        self.read_on()?;
        if self.open.as_ref().and_then(number) != current {
            self.open = File::open(&self.log).ok();
            self.read_on()?;
        }
        Ok(())
    }

    fn read_on(&mut self) -> io::Result<()> {
        match &mut self.open {
            Some(open) => io::copy(open, &mut self.to).map(drop),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::io::Write;

    #[test]
    fn nothing_is_lost_when_another_file_takes_the_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let to = File::create(path("record")).unwrap();
        let mut pages = Pages { log: path("log"), open: None, to };
        pages.turn().unwrap();
        for text in ["first", "second", "third"] {
            fs::rename(path("log"), path("log.old")).ok();
            let mut log = File::create(path("log")).unwrap();
            log.write_all(text.as_bytes()).unwrap();
            pages.turn().unwrap();
            log.write_all(b" boot\n").unwrap();
        }
        pages.turn().unwrap();
        let record = fs::read_to_string(path("record")).unwrap();
        assert_eq!(record, "first boot\nsecond boot\nthird boot\n");
    }
}
