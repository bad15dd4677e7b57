//! Lives that have ended, as lines of JSON: a run that was killed goes on after them.

use super::life::Ended;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file cannot be read or written, or is of another run.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// It cannot be read or written.
    #[error("{}: {source}; give a file that can be written", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is of another seed.
    #[error("{} has lives of seed {theirs}, and this fleet has seed {own}; give another file", file.display())]
    OtherSeed {
        /// The file.
        file: PathBuf,
        /// The seed of its lives.
        theirs: u64,
        /// The seed of this fleet.
        own: u64,
    },
}

/// A file of lives that have ended.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    file: File,
}

impl Results {
    /// Opens a file, and gives the lives that it has; nothing where it begins now. A line that was cut off when the run
    /// was killed is of a life that has not ended.
    ///
    /// # Errors
    ///
    /// [`ResultsError`].
    pub fn open(path: &Path, seed: u64) -> Result<(Self, Option<Vec<Ended>>), ResultsError> {
        let failed = |source| ResultsError::File { file: path.to_owned(), source };
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(failed)?,
        };
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut lines = whole.lines();
        let first = lines.next().map(|line| line.trim_start_matches("seed ").parse().unwrap_or_default());
        if let Some(theirs) = first.filter(|theirs| *theirs != seed) {
            return Err(ResultsError::OtherSeed { file: path.to_owned(), theirs, own: seed });
        }
        let ended = lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
        let mut file = File::options().write(true).create(true).truncate(false).open(path).map_err(failed)?;
        file.set_len(whole.len() as u64).map_err(failed)?;
        io::Seek::seek(&mut file, io::SeekFrom::End(0)).map_err(failed)?;
        if first.is_none() {
            writeln!(file, "seed {seed}").map_err(failed)?;
        }
        Ok((Self { path: path.to_owned(), file }, first.map(|_| ended)))
    }

    /// Adds a life.
    ///
    /// # Errors
    ///
    /// [`ResultsError::File`].
    pub fn add(&mut self, ended: &Ended) -> Result<(), ResultsError> {
        let line = serde_json::to_string(ended).map_err(io::Error::other);
        let written = line.and_then(|line| self.file.write_all(format!("{line}\n").as_bytes()));
        written.map_err(|source| ResultsError::File { file: self.path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Class, Rate, plan};
    use crate::seed::Seed;
    use std::collections::BTreeMap;
    use std::time::Duration;

    #[test]
    fn a_run_that_was_killed_goes_on_after_the_lives_that_have_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lives.jsonl");
        let lasts = Duration::from_secs(60);
        let rate = |class: Class| Rate { rate: 1.0, recoverable: true, lasts, kinds: class.kinds().to_vec() };
        let rates: BTreeMap<_, _> = Class::all().map(|class| (class, rate(class))).collect();
        let faults = plan(Seed(7), &rates, 3).into_iter().map(|fault| (fault, true)).collect();
        let life = |life| Ended {
            life,
            machine: 1,
            faults: if life == 3 { Vec::clone(&faults) } else { Vec::new() },
            failure: None,
            length: Duration::from_millis(1500),
            twice: Vec::new(),
            overlaps: Vec::new(),
        };
        let (mut results, before) = Results::open(&path, 7).unwrap();
        assert!(before.is_none());
        results.add(&life(3)).unwrap();
        results.add(&life(5)).unwrap();
        drop(results);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text += "{\"life\": 9, \"machi";
        std::fs::write(&path, text).unwrap();
        let (mut results, before) = Results::open(&path, 7).unwrap();
        let before = before.unwrap();
        assert_eq!(before.iter().map(|ended| ended.life).collect::<Vec<_>>(), [3, 5]);
        assert_eq!(before[0].faults.len(), Class::all().count());
        results.add(&life(9)).unwrap();
        assert_eq!(Results::open(&path, 7).unwrap().1.unwrap().len(), 3);
        let error = Results::open(&path, 8).unwrap_err().to_string();
        assert!(
            error.ends_with("has lives of seed 7, and this fleet has seed 8; give another file"),
            "{error}"
        );
        assert!(Results::open(Path::new("/dev/null/lives"), 7).is_err());
    }
}
