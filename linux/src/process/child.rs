//! Processes that this one starts: how they begin, and how they end.

use super::Conditions;
use super::output::Output;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::{Pid, chdir, chroot};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often to look whether a program has ended.
const POLL: Duration = Duration::from_millis(20);

/// A program that is spoken with over its standard streams. Dropping it ends it with all it started.
#[derive(Debug)]
pub struct Companion(Child);

impl From<Child> for Companion {
    fn from(child: Child) -> Self {
        Self(child)
    }
}

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

    /// Its output and its error output, being read, where they are pipes.
    pub(super) fn outputs(&mut self) -> [Option<Output>; 2] {
        [self.0.stdout.take().map(Output::of), self.0.stderr.take().map(Output::of)]
    }

    /// How it ended; nothing when it has not in time, or is to be stopped.
    pub(super) fn wait_for(&mut self, conditions: &Conditions<'_>) -> Option<ExitStatus> {
        let started = Instant::now();
        loop {
            let ended = self.try_wait().ok()?;
            if ended.is_some() || started.elapsed() >= conditions.limit || (conditions.is_stopped)() {
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
pub(super) fn with_all_signals(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec only what is async-signal-safe may be called. The closure calls
    // pthread_sigmask, which is (POSIX.1-2017, 2.4.3), and neither allocates nor takes a lock.
    unsafe { command.pre_exec(|| Ok(SigSet::empty().thread_set_mask()?)) }
}

/// Has the child of `command` end with the thread that started it: what an agent began must not go on when
/// that agent has crashed and another one runs in its place.
#[allow(unsafe_code)]
pub(super) fn ending_with_its_parent(command: &mut Command) -> &mut Command {
    // SAFETY: as above; the closure does nothing but one system call, prctl.
    unsafe { command.pre_exec(|| Ok(prctl::set_pdeathsig(Signal::SIGKILL)?)) }
}

/// Has the child of `command` see nothing but the files below `root`.
#[allow(unsafe_code)]
pub(super) fn below<'a>(command: &'a mut Command, root: &Path) -> io::Result<&'a mut Command> {
    let root = CString::new(root.as_os_str().as_bytes())?;
    let enter = move || {
        chroot(root.as_c_str())?;
        Ok(chdir(c"/")?)
    };
    // SAFETY: as above; the closure does nothing but two system calls, and its text was allocated before the
    // fork.
    Ok(unsafe { command.pre_exec(enter) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_no_signal_blocked() {
        SigSet::from(Signal::SIGCHLD).thread_block().unwrap();
        let mut grep = Command::new("grep");
        let output = with_all_signals(grep.args(["SigBlk", "/proc/self/status"])).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "SigBlk:\t0000000000000000\n");
    }
}
