//! The one place that starts external programs.
//!
//! A program is named in [`PROGRAMS`] with the package it comes from, so that whoever builds a
//! ramdisk knows what to pack. Arguments are vectors; no shell is ever involved (S04, P06). Programs that
//! others put into the ramdisk are started by [`accompany`], without arguments, and those of a conductor's host by
//! [`accompany_with`]; those of a deployed system by [`Program::run_inside`].

mod child;
mod output;
mod programs;
mod strangers;

pub use child::{Companion, accompany, accompany_with, spawn_self};
pub use programs::*;
pub use strangers::end_strangers;

use child::{below, ending_with_its_parent, fresh};
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Last bytes of a program's output that an error shows.
const SHOWN: usize = 600;
/// An external program could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{program} cannot be started ({source}): {advice}")]
pub struct StartError {
    program: &'static str,
    advice: String,
    #[source]
    source: io::Error,
}

/// An external program did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It ended with an error.
    #[error("{program} {arguments} ended with {status}: {output}")]
    Failed {
        /// Name of the program.
        program: &'static str,
        /// What it was started with.
        arguments: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it wrote, on one line.
        output: String,
    },
    /// It did not end.
    #[error(
        "{program} {arguments} did not end within {} s: {output}; look for errors of disks in the kernel log",
        .limit.as_secs()
    )]
    TimedOut {
        /// Name of the program.
        program: &'static str,
        /// What it was started with.
        arguments: String,
        /// Time it was given.
        limit: Duration,
        /// The end of what it wrote, on one line.
        output: String,
    },
    /// Its caller waits no more.
    #[error("{program} was ended, because the agent ends; run the step again")]
    Stopped {
        /// Name of the program.
        program: &'static str,
    },
}

/// How a program is run.
#[derive(Clone, Copy)]
pub struct Conditions<'a> {
    /// How long it may take.
    pub limit: Duration,
    /// Whether it must end, asked again and again.
    pub is_stopped: &'a dyn Fn() -> bool,
    /// The folder in which it lies and is started, where that is not the one in the table.
    pub folder: Option<&'a Path>,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// The end of its output.
    pub output: String,
    /// The end of its error output.
    pub messages: String,
    program: &'static str,
    arguments: String,
}

impl Program {
    /// Starts the program and returns at once. Its output goes to the caller's standard error.
    ///
    /// # Errors
    ///
    /// [`StartError`] when the program is missing or cannot be executed.
    pub fn spawn<I, S>(&self, arguments: I) -> Result<Child, StartError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        fresh(self.path.as_ref())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|source| self.start_error(self.pack(self.path.as_ref()), source))
    }

    /// Runs the program to its end and returns what it wrote, output and errors.
    ///
    /// # Errors
    ///
    /// [`RunError`] when it is missing, ends with anything but success, or not within `limit`.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S], limit: Duration) -> Result<String, RunError> {
        let conditions = Conditions { limit, is_stopped: &|| false, folder: None };
        let finished = self.finish(arguments, &conditions)?.succeeded()?;
        Ok(finished.output + &finished.messages)
    }

    /// Runs the program to its end, whatever that is. It never outlives the calling thread.
    ///
    /// # Errors
    ///
    /// [`RunError`] when it is missing, was stopped, or did not end in time.
    pub fn finish<S: AsRef<OsStr>>(
        &self,
        arguments: &[S],
        conditions: &Conditions<'_>,
    ) -> Result<Finished, RunError> {
        let path = conditions.folder.map_or_else(|| self.path.into(), |folder| folder.join(self.name));
        let mut command = fresh(&path);
        command.current_dir(conditions.folder.unwrap_or(Path::new("/")));
        self.run_to_end(command, self.pack(&path), arguments, conditions)
    }

    /// Runs the program of the system below `root`, which sees nothing else of this one's files, with this
    /// `environment` and no other; as [`Program::run`] for the rest.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn run_inside<S: AsRef<OsStr>>(
        &self,
        root: &Path,
        environment: &[(&str, &str)],
        arguments: &[S],
        limit: Duration,
    ) -> Result<String, RunError> {
        let bring = format!("the deployed system has to bring {}", self.path);
        if !self.is_inside(root) {
            return Err(self.start_error(bring, io::ErrorKind::NotFound.into()).into());
        }
        let mut command = fresh(self.path.as_ref());
        command.env_clear().envs(environment.iter().copied());
        below(&mut command, root).map_err(|source| self.start_error(bring.clone(), source))?;
        let conditions = Conditions { limit, is_stopped: &|| false, folder: None };
        let finished = self.run_to_end(command, bring, arguments, &conditions)?.succeeded()?;
        Ok(finished.output + &finished.messages)
    }

    fn run_to_end<S: AsRef<OsStr>>(
        &self,
        mut command: Command,
        advice: String,
        arguments: &[S],
        conditions: &Conditions<'_>,
    ) -> Result<Finished, RunError> {
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = ending_with_its_parent(command.process_group(0)).spawn();
        let mut child = Companion::from(child.map_err(|source| self.start_error(advice, source))?);
        let outputs = child.outputs();
        let status = child.wait_for(conditions);
        // Ends it with all of its process group.
        drop(child);
        let [output, messages] = outputs.map(|output| output.map(|output| output.finish(self.name)));
        let (output, messages) = (output.unwrap_or_default(), messages.unwrap_or_default());
        let words: Vec<_> = arguments.iter().map(|word| word.as_ref().to_string_lossy()).collect();
        let (program, arguments) = (self.name, words.join(" "));
        match status {
            Some(status) => Ok(Finished { status, output, messages, program, arguments }),
            None if (conditions.is_stopped)() => Err(RunError::Stopped { program }),
            None => {
                let output = last_of(&(output + &messages), SHOWN);
                Err(RunError::TimedOut { program, arguments, limit: conditions.limit, output })
            }
        }
    }

    /// Whether the program is there.
    pub fn is_present(&self) -> bool {
        Path::new(self.path).exists()
    }

    /// Whether the program exists, for callers that check before they run it.
    ///
    /// # Errors
    ///
    /// It is not there; the text says how it is packed.
    pub fn require(&self) -> Result<(), StartError> {
        let missing = |source| self.start_error(self.pack(self.path.as_ref()), source);
        std::fs::metadata(self.path).map(drop).map_err(missing)
    }

    /// Whether the system below `root` has the program.
    pub fn is_inside(&self, root: &Path) -> bool {
        root.join(self.path.trim_start_matches('/')).is_file()
    }

    /// What to do when it is not at `path` in the ramdisk.
    fn pack(&self, path: &Path) -> String {
        format!(
            "pack it by farrier-image build --program {}, from the package {}",
            path.display(),
            self.package
        )
    }

    fn start_error(&self, advice: String, source: io::Error) -> StartError {
        StartError { program: self.name, advice, source }
    }
}

impl Finished {
    /// The same, if the program reports success.
    ///
    /// # Errors
    ///
    /// [`RunError::Failed`] with the end of what it wrote.
    pub fn succeeded(self) -> Result<Self, RunError> {
        if self.status.success() { Ok(self) } else { Err(self.failure()) }
    }

    /// The failure it would be for a caller that expected something else.
    pub fn failure(&self) -> RunError {
        let output = last_of(&format!("{}\n{}", self.output, self.messages), SHOWN);
        let (program, arguments) = (self.program, self.arguments.clone());
        RunError::Failed { program, arguments, status: self.status, output }
    }
}

/// The end of a text, at most `length` bytes, on one line.
fn last_of(text: &str, length: usize) -> String {
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    let start = line.len().saturating_sub(length);
    let start = (start..=line.len()).find(|start| line.is_char_boundary(*start)).unwrap_or_default();
    line[start..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::time::ClockId;
    use std::time::Instant;

    fn test_program(name: &'static str, path: &'static str, package: &'static str) -> Program {
        Program { name, path, package, is_optional: true }
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let program = test_program("nosuch", "/nonexistent/nosuch", "nosuch-static");
        let text = program.spawn(["x"]).unwrap_err().to_string();
        for part in ["nosuch", "/nonexistent/nosuch", "nosuch-static"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_program_that_fails_is_told_with_its_arguments_and_its_last_words() {
        let shell = |path| test_program("test", path, "coreutils");
        let long = Duration::from_secs(60);
        let echo = shell("/bin/echo");
        assert_eq!(echo.run(&["a", "b c"], long).unwrap(), "a b c\n");
        let text = shell("/bin/ls").run(&["/nonexistent/x"], long).unwrap_err().to_string();
        assert!(text.starts_with("test /nonexistent/x ended with exit status: 2: "), "{text}");
        assert!(matches!(shell("/nonexistent/x").run(&["x"], long), Err(RunError::Start(_))));
        let text = shell("/bin/sleep").run(&["600"], Duration::from_millis(50)).unwrap_err().to_string();
        assert!(text.starts_with("test 600 did not end within 0 s"), "{text}");
        assert_eq!(last_of("one\n\n  two\nthree\n", 8), "o; three");
        assert_eq!(last_of("\u{e9}\u{e9}", 3), "\u{e9}");
    }

    #[test]
    fn a_stopped_program_ends_with_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let marker = folder.path().join("started");
        // The shell's child ignores nothing and would sleep on for ten minutes.
        let script = format!("sleep 600 & echo $! > {0}.new; mv {0}.new {0}; wait", marker.display());
        let conditions = Conditions {
            limit: Duration::from_secs(60),
            is_stopped: &|| marker.exists(),
            folder: Some(Path::new("/bin")),
        };
        let error = test_program("sh", "/nonexistent/sh", "dash").finish(&["-c", &script], &conditions);
        assert!(matches!(error, Err(RunError::Stopped { program: "sh" })), "{error:?}");
        let sleeper = std::fs::read_to_string(&marker).unwrap();
        let status = Path::new("/proc").join(sleeper.trim()).join("stat");
        let end = Instant::now() + Duration::from_secs(60);
        // Gone, or waiting to be reaped by a parent that is not this process. The kernel ends it when it is scheduled next.
        while let Ok(state) = std::fs::read_to_string(&status)
            && !state.contains(") Z ")
        {
            assert!(Instant::now() < end, "{state}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_daemon_that_a_program_leaves_behind_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        // A session of its own, out of reach of the signal that ends the program's group. It ends after this folder.
        let script = format!(
            "echo begun; setsid sh -c 'while [ -e {} ]; do sleep 1; done' &",
            folder.path().display()
        );
        let started = Instant::now();
        let output = test_program("sh", "/bin/sh", "dash").run(&["-c", &script], Duration::from_secs(600));
        assert_eq!(output.unwrap(), "begun\n");
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    }

    #[test]
    fn f54_waiting_for_a_program_leaves_the_processor_to_others() {
        let spent = || Duration::from(ClockId::CLOCK_THREAD_CPUTIME_ID.now().unwrap());
        let before = spent();
        test_program("sleep", "/bin/sleep", "coreutils").run(&["1"], Duration::from_secs(60)).unwrap();
        let spent = spent() - before;
        assert!(spent < Duration::from_millis(200), "{spent:?} of processor time for a second of waiting");
    }

    #[test]
    fn loop_a_program_runs_in_another_root_with_no_environment_of_ours() {
        let root = tempfile::tempdir().unwrap();
        let busybox = test_program("busybox", "/bin/busybox", "busybox-static");
        assert!(!busybox.is_inside(root.path()));
        std::fs::create_dir(root.path().join("bin")).unwrap();
        std::fs::copy(BUSYBOX.path, root.path().join("bin/busybox")).unwrap();
        assert!(busybox.is_inside(root.path()));
        let run = |arguments: &[&str]| {
            busybox.run_inside(root.path(), &[("A", "1")], arguments, Duration::from_secs(60)).unwrap()
        };
        assert_eq!(run(&["env"]), "A=1\n");
        assert_eq!(run(&["find", "/"]), "/\n/bin\n/bin/busybox\n");
        assert_eq!(run(&["pwd"]), "/\n");
        let missing = Program { path: "/bin/nosuch", ..busybox };
        let error = missing.run_inside(root.path(), &[], &["x"], Duration::from_secs(60)).unwrap_err();
        assert!(error.to_string().contains("the deployed system has to bring /bin/nosuch"), "{error}");
    }

    #[test]
    fn every_program_is_named_once() {
        let mut names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PROGRAMS.len());
    }
}
