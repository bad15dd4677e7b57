//! Burn-in: hours of load that find weak parts before a user does (section 9.11).
//!
//! Each part of the machine has a module, which turns the operator's settings (`agent_burnin_…` in
//! `driver_info`) into one run of the program that knows how to load it. That a program ended well is not
//! enough: its own figures must show that it did the work.

mod etcd;
mod fio;
mod graphics;
mod network;
mod pairing;
mod processor;
mod smart;
mod storage;

pub use graphics::burn_in as graphics;
pub use network::burn_in as network;
pub use processor::{CPU, MEMORY, burn_in as processor};
pub use storage::burn_in as storage;

use crate::error::StepError;
use crate::manager::StepCall;
use crate::setting::Section;
use farrier_linux::process::{Conditions, Finished, Program, RunError};
use farrier_protocol::error::{CommandError, ErrorKind};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The time beyond its limit after which a program counts as hung.
const GRACE: Duration = Duration::from_secs(15 * 60);
/// For programs whose duration depends on the machine alone.
const UNLIMITED: Duration = Duration::MAX;

/// A burn-in failed, or could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum BurnInError {
    /// A program was missing, failed or hung.
    #[error(transparent)]
    Program(#[from] RunError),
    /// The operator's output file cannot be written.
    #[error("{key}: {} cannot be written ({source}); choose a folder that the ramdisk has, such as /tmp", path.display())]
    OutputFile {
        /// The setting.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A program reported success and shows no work.
    #[error("{program} ended well and shows no work ({reason}); nothing is proven by that")]
    NoProof {
        /// Name of the program.
        program: &'static str,
        /// What is missing.
        reason: String,
    },
    /// Parts of the machine failed.
    #[error("{0}; replace what failed")]
    Faulty(String),
    /// The settings do not say what to do, or no partner was found.
    #[error("{0}")]
    Unprepared(String),
}

impl From<BurnInError> for StepError {
    fn from(error: BurnInError) -> Self {
        let kind = match &error {
            BurnInError::Program(_) | BurnInError::NoProof { .. } | BurnInError::OutputFile { .. } => {
                ErrorKind::CommandExecutionError
            }
            BurnInError::Faulty(_) | BurnInError::Unprepared(_) => ErrorKind::CleaningError,
        };
        Self::Failed(CommandError::new(kind, error.to_string()))
    }
}

/// Runs a program until it ends, the time is over, or the agent ends.
fn run(
    call: &StepCall<'_>,
    program: &Program,
    arguments: &[String],
    limit: Duration,
) -> Result<Finished, RunError> {
    tracing::info!(program = program.name, arguments = arguments.join(" "), "burn-in");
    let conditions = Conditions { limit, is_stopped: &|| call.host.is_ending(), folder: None };
    program.finish(arguments, &conditions)
}

/// Waits, but not when the agent ends.
fn wait(call: &StepCall<'_>, limit: Duration) {
    let started = Instant::now();
    while started.elapsed() < limit && !call.host.is_ending() {
        thread::sleep(Duration::from_millis(200));
    }
}

/// A file in which the operator wants the program's own report.
#[derive(Debug, Default)]
struct OutputFile(Option<(File, PathBuf, &'static str)>);

impl OutputFile {
    /// Creates the file before anything is started: a path that cannot be written must not show after a day.
    fn create(section: Section<'_>, key: &'static str, suffix: &str) -> Result<Self, StepError> {
        let Some(path) = section.path(key)? else { return Ok(Self::default()) };
        let mut name = path.into_os_string();
        name.push(suffix);
        let path = PathBuf::from(name);
        match empty_file(&path) {
            Ok(file) => Ok(Self(Some((file, path, key)))),
            Err(source) => Err(BurnInError::OutputFile { key, path, source }.into()),
        }
    }

    fn write(&mut self, text: &str) -> Result<(), BurnInError> {
        let Some((file, path, key)) = &mut self.0 else { return Ok(()) };
        let failed = |source| BurnInError::OutputFile { key, path: path.clone(), source };
        file.write_all(text.as_bytes()).map_err(failed)
    }
}

/// Opens a file with nothing in it. Never anything else: a report written to a disk would be lost data.
fn empty_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    // A pipe that nobody reads would be waited for.
    options.write(true).create(true).truncate(false).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
    }
    file.set_len(0)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_protocol::lookup::Node;
    use serde_json::{Value, json};
    use std::fs;

    fn create(path: &Path) -> Result<OutputFile, StepError> {
        let settings: Value = json!({"file": path});
        let node = Node { driver_info: serde_json::from_value(settings).unwrap(), ..Node::default() };
        OutputFile::create(Section::driver_info(&node), "file", "")
    }

    #[test]
    fn a_report_goes_to_a_file_and_to_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report");
        fs::write(&file, "an older and longer report").unwrap();
        create(&file).unwrap().write("new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for other in [Path::new("/dev/null"), folder.path(), &pipe] {
            let error = create(other).unwrap_err();
            assert!(
                matches!(&error, StepError::Failed(error) if error.details.contains("cannot be written")),
                "{error}"
            );
        }
    }
}
