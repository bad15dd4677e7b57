//! Where the journal is kept: in memory by machine, and as lines of JSON in a file.

use super::entry::{Entry, Side, Who};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// The file of a journal cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}; give a file that can be written, or no --journal", file.display())]
pub struct JournalError {
    /// The file.
    file: PathBuf,
    /// Why.
    #[source]
    source: io::Error,
}

/// The journal of a fleet. What is written stays as it is.
#[derive(Debug)]
pub struct Journal {
    start: Instant,
    machines: Box<[Mutex<Vec<Entry>>]>,
    file: Option<Lines>,
}

/// Writes lines to a file, beside what the fleet does.
#[derive(Debug)]
struct Lines {
    /// Nothing once the file is to be closed.
    sender: Option<mpsc::Sender<String>>,
    writer: Option<JoinHandle<()>>,
}

impl Journal {
    /// The journal of so many machines, which also goes to the end of a file.
    ///
    /// # Errors
    ///
    /// [`JournalError`].
    pub fn new(machines: u32, file: Option<&Path>) -> Result<Self, JournalError> {
        let machines = (0..machines).map(|_| Mutex::default()).collect();
        let file = file.map(Lines::append_to).transpose()?;
        Ok(Self { start: Instant::now(), machines, file })
    }

    /// Writes that something was asked of a machine, or done by it.
    pub fn note(
        &self,
        machine: u32,
        life: Option<u64>,
        side: Side,
        by: Option<Who>,
        act: impl Into<String>,
        outcome: impl Into<String>,
    ) {
        let (act, outcome) = (act.into(), outcome.into());
        let at = self.start.elapsed().as_secs_f64();
        let entry = Entry { at, machine, life, side, by, act, outcome };
        tracing::debug!("{entry}");
        if let Some(file) = &self.file {
            file.write(&entry);
        }
        if let Some(mut entries) = self.of(machine) {
            entries.push(entry);
        }
    }

    /// What is in memory of a machine.
    pub fn read(&self, machine: u32) -> Vec<Entry> {
        self.of(machine).map(|entries| entries.clone()).unwrap_or_default()
    }

    /// Takes what is in memory of a machine out of it, so that a long run does not fill it.
    pub fn take(&self, machine: u32) -> Vec<Entry> {
        self.of(machine).map(|mut entries| std::mem::take(&mut *entries)).unwrap_or_default()
    }

    fn of(&self, machine: u32) -> Option<MutexGuard<'_, Vec<Entry>>> {
        let entries = self.machines.get(machine as usize)?;
        Some(entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Lines {
    fn append_to(file: &Path) -> Result<Self, JournalError> {
        let opened = File::options().append(true).create(true).open(file);
        let opened = opened.map_err(|source| JournalError { file: file.to_owned(), source })?;
        let (sender, lines) = mpsc::channel();
        let path = file.to_owned();
        let writer = thread::spawn(move || {
            if let Err(error) = write(opened, &lines) {
                tracing::error!("the journal {} ends here: {error}", path.display());
            }
        });
        Ok(Self { sender: Some(sender), writer: Some(writer) })
    }

    fn write(&self, entry: &Entry) {
        // A writer that has failed has said so.
        if let (Some(sender), Ok(line)) = (&self.sender, serde_json::to_string(entry)) {
            sender.send(line).ok();
        }
    }
}

/// Writes what comes, and brings it to the file whenever nothing more has come.
fn write(file: File, lines: &mpsc::Receiver<String>) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    while let Ok(line) = lines.recv() {
        writeln!(file, "{line}")?;
        while let Ok(line) = lines.try_recv() {
            writeln!(file, "{line}")?;
        }
        file.flush()?;
    }
    file.flush()
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(writer) = self.writer.take() {
            // It has nothing to say that it has not logged.
            writer.join().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_file_goes_on_where_an_earlier_run_ended() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.jsonl");
        for run in ["first", "second"] {
            let journal = Journal::new(2, Some(&file)).unwrap();
            journal.note(1, Some(3), Side::Machine, None, run, "done");
            assert_eq!(journal.read(1).len(), 1);
            assert_eq!((journal.take(1).len(), journal.read(1).len()), (1, 0));
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let acts: Vec<_> = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
        assert_eq!((&acts[0]["act"], &acts[1]["act"], acts.len()), (&"first".into(), &"second".into(), 2));
        let error = Journal::new(1, Some(Path::new("/dev/null/journal"))).unwrap_err().to_string();
        assert!(error.starts_with("/dev/null/journal: "), "{error}");
    }
}
