//! The one place that starts external programs.
//!
//! A program is named in [`PROGRAMS`] with the package it comes from, so that whoever builds a
//! ramdisk knows what to pack. Arguments are vectors; no shell is ever involved (S04, P06). Programs that
//! others put into the ramdisk are started by [`accompany`], without arguments.

use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// An external program that the agent may start.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Name in logs.
    pub name: &'static str,
    /// Path inside the ramdisk.
    pub path: &'static str,
    /// Debian package that carries it.
    pub package: &'static str,
}

/// Applets of busybox: the DHCP client, and login with its shell on a rescued machine.
pub const BUSYBOX: Program = Program { name: "busybox", path: "/usr/bin/busybox", package: "busybox-static" };

/// The SSH server of a rescued machine.
pub const DROPBEAR: Program =
    Program { name: "dropbear", path: "/usr/sbin/dropbear", package: "dropbear-bin" };

/// Makes, starts and stops arrays of software RAID.
pub const MDADM: Program = Program { name: "mdadm", path: "/usr/sbin/mdadm", package: "mdadm" };

/// Every external program there is.
pub const PROGRAMS: &[Program] = &[BUSYBOX, DROPBEAR, MDADM];

/// Last bytes of a program's output that an error shows.
const SHOWN: usize = 600;

/// An external program could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{program} cannot be started from {path}: pack it with farrier-image ({package})")]
pub struct StartError {
    program: &'static str,
    path: &'static str,
    package: &'static str,
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
        with_all_signals(Command::new(self.path).args(arguments))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|source| self.start_error(source))
    }

    /// Runs the program to its end and returns what it wrote, output and errors.
    ///
    /// # Errors
    ///
    /// [`RunError`] when it is missing, or ends with anything but success.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<String, RunError> {
        let mut command = Command::new(self.path);
        let output = with_all_signals(command.args(arguments))
            .stdin(Stdio::null())
            .output()
            .map_err(|source| self.start_error(source))?;
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let text = text.concat();
        if output.status.success() {
            return Ok(text);
        }
        let words: Vec<_> = arguments.iter().map(|word| word.as_ref().to_string_lossy()).collect();
        Err(RunError::Failed {
            program: self.name,
            arguments: words.join(" "),
            status: output.status,
            output: last_of(&text, SHOWN),
        })
    }

    /// Whether the program is there.
    pub fn is_present(&self) -> bool {
        Path::new(self.path).exists()
    }

    fn start_error(&self, source: io::Error) -> StartError {
        StartError { program: self.name, path: self.path, package: self.package, source }
    }
}

/// The end of a text, at most `length` bytes, on one line.
fn last_of(text: &str, length: usize) -> String {
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    let start = line.len().saturating_sub(length);
    let start = (start..=line.len()).find(|start| line.is_char_boundary(*start)).unwrap_or_default();
    line[start..].to_owned()
}

/// A program that is spoken with over its standard streams. Dropping it ends it with all it started.
#[derive(Debug)]
pub struct Companion(Child);

/// Starts a program without arguments, in a process group of its own. Its error output goes to the
/// caller's.
///
/// # Errors
///
/// Whatever `execve` reports.
pub fn accompany(program: &Path) -> io::Result<Companion> {
    Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn().map(Companion)
}

impl Companion {
    /// Its standard input and output.
    ///
    /// # Errors
    ///
    /// `BrokenPipe` when they were taken before.
    pub fn pipes(&mut self) -> io::Result<(ChildStdin, ChildStdout)> {
        self.0.stdin.take().zip(self.0.stdout.take()).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    /// How it ended; nothing while it runs.
    ///
    /// # Errors
    ///
    /// Whatever `waitpid` reports.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        // The group outlives its leader when that left children behind; an empty one is no error to us.
        if let Ok(group) = i32::try_from(self.0.id()) {
            killpg(Pid::from_raw(group), Signal::SIGKILL).ok();
        }
        self.0.wait().ok();
    }
}

/// Starts this same executable again, in another role.
///
/// # Errors
///
/// Whatever `execve` reports.
pub fn spawn_self<I, S>(arguments: I) -> io::Result<Child>
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    with_all_signals(Command::new("/proc/self/exe").args(arguments)).stdin(Stdio::null()).spawn()
}

/// Has the child of `command` start without blocked signals. PID 1 blocks that of its ending children, and
/// a server that inherited this would never learn of its own.
#[allow(unsafe_code)]
fn with_all_signals(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec only what is async-signal-safe may be called. The closure calls
    // pthread_sigmask, which is (POSIX.1-2017, 2.4.3), and neither allocates nor takes a lock.
    unsafe { command.pre_exec(|| Ok(SigSet::empty().thread_set_mask()?)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let program = Program { name: "nosuch", path: "/nonexistent/nosuch", package: "nosuch-static" };
        let text = program.spawn(["x"]).unwrap_err().to_string();
        for part in ["nosuch", "/nonexistent/nosuch", "nosuch-static"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_child_has_no_signal_blocked() {
        SigSet::from(Signal::SIGCHLD).thread_block().unwrap();
        let mut grep = Command::new("grep");
        let output = with_all_signals(grep.args(["SigBlk", "/proc/self/status"])).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "SigBlk:\t0000000000000000\n");
    }

    #[test]
    fn a_program_that_fails_is_told_with_its_arguments_and_its_last_words() {
        let shell = |path| Program { name: "test", path, package: "coreutils" };
        let echo = shell("/bin/echo");
        assert_eq!(echo.run(&["a", "b c"]).unwrap(), "a b c\n");
        let text = shell("/bin/ls").run(&["/nonexistent/x"]).unwrap_err().to_string();
        assert!(text.starts_with("test /nonexistent/x ended with exit status: 2: "), "{text}");
        assert!(matches!(shell("/nonexistent/x").run(&["x"]), Err(RunError::Start(_))));
        assert_eq!(last_of("one\n\n  two\nthree\n", 8), "o; three");
        assert_eq!(last_of("\u{e9}\u{e9}", 3), "\u{e9}");
    }

    #[test]
    fn every_program_is_named_once() {
        let mut names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PROGRAMS.len());
    }
}
