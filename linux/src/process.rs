//! The one place that starts external programs.
//!
//! A program is named in [`PROGRAMS`] with the package it comes from, so that whoever builds a
//! ramdisk knows what to pack. Arguments are vectors; no shell is ever involved (S04, P06). Programs that
//! others put into the ramdisk are started by [`accompany`], without arguments.

use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

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
/// How often to look whether a program has ended.
const POLL: Duration = Duration::from_millis(20);

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
    /// [`RunError`] when it is missing, ends with anything but success, or not within `limit`.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S], limit: Duration) -> Result<String, RunError> {
        let mut command = Command::new(self.path);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = with_all_signals(command.process_group(0)).spawn();
        let mut child = Companion(child.map_err(|source| self.start_error(source))?);
        let output = (child.0.stdout.take().map(read_all), child.0.stderr.take().map(read_all));
        let status = child.wait_for(limit);
        // Ends it with all that could hold its output open.
        drop(child);
        let output = [output.0, output.1].into_iter().flatten().filter_map(|reader| reader.join().ok());
        let text: String = output.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect();
        if status.is_some_and(|status| status.success()) {
            return Ok(text);
        }
        let words: Vec<_> = arguments.iter().map(|word| word.as_ref().to_string_lossy()).collect();
        let (program, arguments, output) = (self.name, words.join(" "), last_of(&text, SHOWN));
        Err(match status {
            Some(status) => RunError::Failed { program, arguments, status, output },
            None => RunError::TimedOut { program, arguments, limit, output },
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

/// Reads a pipe to its end beside the caller: whoever waits for a program must not let it block.
fn read_all(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is worth showing.
        pipe.read_to_end(&mut bytes).ok();
        bytes
    })
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
    let mut command = Command::new(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    with_all_signals(&mut command).spawn().map(Companion)
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

    /// How it ended; nothing when it has not after `limit`.
    fn wait_for(&mut self, limit: Duration) -> Option<ExitStatus> {
        let started = Instant::now();
        loop {
            let ended = self.try_wait().ok()?;
            if ended.is_some() || started.elapsed() >= limit {
                return ended;
            }
            thread::sleep(POLL);
        }
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
    fn every_program_is_named_once() {
        let mut names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PROGRAMS.len());
    }
}
