//! The programs of initiators, started as children that end with the thread which started them. What they say goes to
//! private files.

use super::error::IscsiError;
use farrier_linux::process::{Companion, accompany_with};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How often to look whether something has come of a program.
const POLL: Duration = Duration::from_millis(50);
/// Most characters of what a program said that an error shows.
const SHOWN: usize = 400;

/// A program of this host.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// Where it is.
    pub(super) path: PathBuf,
    /// What to install where it is not, as Debian calls it.
    pub(super) packages: &'static str,
}

/// One that runs. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Running {
    child: Companion,
    name: String,
    messages: PathBuf,
}

impl Program {
    /// Whether it is there.
    ///
    /// # Errors
    ///
    /// [`IscsiError::NoInitiator`].
    pub(super) fn require(&self) -> Result<(), IscsiError> {
        fs::metadata(&self.path).map(drop).map_err(|source| self.unusable(source))
    }

    /// Starts it. Other users of this host see the arguments, and not what is in the environment. `messages` is a new
    /// file.
    ///
    /// # Errors
    ///
    /// [`IscsiError::NoInitiator`].
    pub(super) fn start(
        &self,
        arguments: &[String],
        environment: &[(&str, &str)],
        messages: PathBuf,
    ) -> Result<Running, IscsiError> {
        let started = private_file(&messages)
            .and_then(|file| accompany_with(&self.path, arguments, environment, file))
            .map_err(|source| self.unusable(source));
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        started.map(|child| Running { child, name, messages })
    }

    /// It cannot be used.
    pub(super) fn unusable(&self, source: io::Error) -> IscsiError {
        IscsiError::NoInitiator { program: self.path.display().to_string(), source, packages: self.packages }
    }
}

impl Running {
    /// How it ended; nothing while it runs.
    ///
    /// # Errors
    ///
    /// The system does not tell.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>, String> {
        self.child.try_wait().map_err(|error| error.to_string())
    }

    /// How it ended, once it has.
    ///
    /// # Errors
    ///
    /// Why it is not waited for any more.
    pub(super) fn wait(
        &mut self,
        limit: Duration,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<ExitStatus, String> {
        self.until(limit, is_cancelled, "end", Self::ended)
    }

    /// What `look` finds, as soon as there is something. What the program is waited for to do is `awaited`, a verb.
    ///
    /// # Errors
    ///
    /// That of `look`, or why it is not waited for any more.
    pub(super) fn until<T>(
        &mut self,
        limit: Duration,
        is_cancelled: &dyn Fn() -> bool,
        awaited: &str,
        mut look: impl FnMut(&mut Self) -> Result<Option<T>, String>,
    ) -> Result<T, String> {
        let deadline = Instant::now() + limit;
        while !is_cancelled() {
            if let Some(found) = look(self)? {
                return Ok(found);
            }
            if Instant::now() >= deadline {
                return Err(format!("{} did not {awaited} within {} s", self.name, limit.as_secs()));
            }
            thread::sleep(POLL);
        }
        Err("it is not wanted any more".to_owned())
    }

    /// All that it has said.
    pub(super) fn output(&self) -> String {
        fs::read_to_string(&self.messages).unwrap_or_default()
    }

    /// The beginning of that on one line, for an error.
    pub(super) fn said(&self) -> String {
        let text = self.output();
        let line: String =
            text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN).collect();
        if line.is_empty() {
            format!("{} says nothing", self.name)
        } else {
            format!("{} says: {line}", self.name)
        }
    }
}

/// A folder for the files of a session, for its owner alone. It ends with what is returned.
pub(super) fn private_folder() -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("farrier-iscsi-").permissions(Permissions::from_mode(0o700)).tempdir()
}

/// A new file for its owner alone.
pub(super) fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_says_is_kept_from_others_and_shown_on_one_line() {
        let folder = private_folder().unwrap();
        assert_eq!(fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, 0o700);
        let shell = Program { path: "/bin/sh".into(), packages: "dash" };
        let script = ["-c", "echo $WORD; echo two; exit 3"].map(str::to_owned);
        let messages = folder.path().join("messages");
        let mut running = shell.start(&script, &[("WORD", "one")], messages.clone()).unwrap();
        assert_eq!(running.wait(Duration::from_secs(60), &|| false).unwrap().code(), Some(3));
        assert_eq!((running.output().as_str(), running.said().as_str()), ("one\ntwo\n", "sh says: one two"));
        assert_eq!(fs::metadata(messages).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_program_that_does_not_end_is_not_waited_for_and_a_missing_one_is_named_with_its_package() {
        let folder = private_folder().unwrap();
        let sleep = Program { path: "/bin/sleep".into(), packages: "coreutils" };
        for (number, limit, is_cancelled, expected) in
            [(1, Duration::ZERO, false, "did not end within 0 s"), (2, Duration::MAX / 4, true, "not wanted")]
        {
            let file = folder.path().join(number.to_string());
            let mut running = sleep.start(&["600".to_owned()], &[], file).unwrap();
            let error = running.wait(limit, &|| is_cancelled).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert_eq!(running.said(), "sleep says nothing");
        }
        let missing = Program { path: "/nonexistent/initiator".into(), packages: "a and b" };
        let error = missing.require().unwrap_err().to_string();
        assert!(error.contains("/nonexistent/initiator") && error.ends_with("install a and b"), "{error}");
        assert!(missing.start(&[], &[], folder.path().join("3")).is_err());
    }
}
