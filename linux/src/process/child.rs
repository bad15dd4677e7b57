//! Processes that this one starts: how they begin, and how they end.

use super::Conditions;
use super::output::Output;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::stat::Mode;
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, chdir, chroot, write};
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often to look whether a program has ended.
const POLL: Duration = Duration::from_millis(20);
/// Time for a program to end that was killed. One that waits for a broken disk ends when the disk answers.
const PARTING: Duration = Duration::from_secs(5);
/// Which process the kernel ends first when memory runs out: -1000 is never, 1000 the first one.
const OOM_SCORE: &CStr = c"/proc/self/oom_score_adj";

/// A program that is spoken with over its standard streams. Dropping it ends it with all it started, and waits for
/// that no longer than a few seconds.
#[derive(Debug)]
pub struct Companion(Child);

impl From<Child> for Companion {
    fn from(child: Child) -> Self {
        Self(child)
    }
}

/// Starts a program without arguments, in a process group of its own. It ends with the calling thread. Its error
/// output goes to the caller's.
///
/// # Errors
///
/// Whatever `execve` reports.
pub fn accompany(program: &Path) -> io::Result<Companion> {
    let mut command = fresh(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    ending_with_its_parent(&mut command).spawn().map(Companion)
}

/// Starts a program with these arguments and this environment, as [`accompany`] does, which is not spoken with over its
/// standard streams. Of the caller's environment it has where programs are. What it says goes to `messages`.
///
/// # Errors
///
/// Whatever `execve` reports.
pub fn accompany_with<S: AsRef<OsStr>>(
    program: &Path,
    arguments: &[S],
    environment: &[(&str, &str)],
    messages: File,
) -> io::Result<Companion> {
    let mut command = fresh(program);
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.args(arguments).envs(environment.iter().copied()).stdin(Stdio::null()).process_group(0);
    command.stdout(messages.try_clone()?).stderr(messages);
    ending_with_its_parent(&mut command).spawn().map(Companion)
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
        let deadline = Instant::now() + PARTING;
        while let Ok(None) = self.0.try_wait() {
            if Instant::now() >= deadline {
                return self.leave_to_a_reaper();
            }
            thread::sleep(POLL);
        }
    }
}

impl Companion {
    /// Somebody has to wait for it, or it stays a zombie when it ends.
    fn leave_to_a_reaper(&mut self) {
        let pid = self.0.id();
        tracing::error!(
            pid,
            "a program that was killed does not end: a device that it waits for does not answer"
        );
        let Ok(pid) = i32::try_from(pid) else { return };
        thread::spawn(move || while let Err(Errno::EINTR) = waitpid(Pid::from_raw(pid), None) {});
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
    fresh(Path::new("/proc/self/exe")).args(arguments).stdin(Stdio::null()).spawn()
}

/// A command for `program` whose child inherits nothing that concerns this process alone: blocked signals, and how
/// dear it is to the kernel. PID 1 blocks the signal of its ending children, and a server that inherited this would
/// never learn of its own; a child of the agent is to be ended before the agent when memory runs out.
#[allow(unsafe_code)]
pub(super) fn fresh(program: &Path) -> Command {
    let mut command = Command::new(program);
    // SAFETY: between fork and exec only what is async-signal-safe may be called. The closure calls
    // pthread_sigmask, open, write and close, which are (POSIX.1-2017, 2.4.3), and neither allocates nor takes a
    // lock.
    unsafe { command.pre_exec(|| Ok(SigSet::empty().thread_set_mask()?).and_then(|()| forget_oom_score())) };
    command
}

/// Gives the calling process the score of any other. Everybody may do so, if there is a `/proc`.
fn forget_oom_score() -> io::Result<()> {
    match open(OOM_SCORE, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty()) {
        Err(Errno::ENOENT) => Ok(()),
        score => Ok(write(score?, b"0").map(drop)?),
    }
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
    use super::super::{Program, RunError};
    use super::*;
    use nix::mount::{MntFlags, MsFlags, mount, umount2};
    use nix::sys::wait::WaitStatus;
    use std::fs;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// In a process of its own, for the score is one for all threads of a process.
    #[test]
    fn a_child_inherits_no_blocked_signal_and_x01_no_oom_score() {
        const ALONE: &str = "FARRIER_TEST_OOM_SCORE";
        if std::env::var_os(ALONE).is_none() {
            let mut own = Command::new(std::env::current_exe().unwrap());
            let name = "process::child::tests::a_child_inherits_no_blocked_signal_and_x01_no_oom_score";
            let ended = own.args(["--exact", name]).env(ALONE, "1").output().unwrap();
            assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
            return;
        }
        SigSet::from(Signal::SIGCHLD).thread_block().unwrap();
        // To be dearer than others needs a privilege, to be cheaper does not.
        fs::write("/proc/self/oom_score_adj", "500").unwrap();
        let said = |command: &mut Command| String::from_utf8(command.output().unwrap().stdout).unwrap();
        let status = said(fresh(Path::new("/bin/grep")).args(["SigBlk", "/proc/self/status"]));
        assert_eq!(status, "SigBlk:\t0000000000000000\n");
        assert_eq!(said(fresh(Path::new("/bin/cat")).arg("/proc/self/oom_score_adj")), "0\n");
        let mut companion = accompany(Path::new("/bin/cat")).unwrap();
        let score = fs::read_to_string(format!("/proc/{}/oom_score_adj", companion.0.id())).unwrap();
        assert_eq!(score, "0\n");
        drop(companion.pipes().unwrap());
    }

    #[test]
    fn x01_a_companion_ends_with_the_thread_that_started_it() {
        let (sender, receiver) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let mut companion = accompany(Path::new("/bin/cat")).unwrap();
            let pipes = companion.pipes().unwrap();
            sender.send((companion.0.id(), pipes)).unwrap();
            // What a crash does not run.
            std::mem::forget(companion);
        })
        .join()
        .unwrap();
        let (pid, _pipes) = receiver.recv().unwrap();
        let ended = waitpid(Pid::from_raw(i32::try_from(pid).unwrap()), None).unwrap();
        assert!(matches!(ended, WaitStatus::Signaled(_, Signal::SIGKILL, _)), "{ended:?}");
    }

    #[test]
    fn x01_what_a_companion_says_is_in_its_file_and_it_ends_when_nobody_wants_it() {
        let messages = tempfile::NamedTempFile::new().unwrap();
        let script = "echo here; echo there >&2; exec sleep 600";
        let shell = Path::new("/bin/sh");
        let companion = accompany_with(shell, &["-c", script], &[], messages.reopen().unwrap()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while fs::read_to_string(messages.path()).unwrap() != "here\nthere\n" {
            assert!(Instant::now() < deadline, "it says nothing");
            thread::sleep(POLL);
        }
        let process = Path::new("/proc").join(companion.0.id().to_string());
        assert!(process.exists());
        drop(companion);
        assert!(!process.exists());
    }

    /// A file system whose server reads requests and answers none but the first: whoever waits for one of the
    /// others cannot be killed.
    fn mount_of_a_silent_server(folder: &Path) -> File {
        let mut server = File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", server.as_raw_fd());
        let kind = Some("fuse");
        mount(Some("silent"), folder, kind, MsFlags::empty(), Some(options.as_str())).unwrap();
        let mut request = vec![0; 1 << 20];
        assert_ne!(server.read(&mut request).unwrap(), 0);
        // `struct fuse_out_header` with the number of the request, and `struct fuse_init_out` of version 7.31.
        let mut answer = vec![0; 16 + 64];
        answer[..4].copy_from_slice(&80_u32.to_ne_bytes());
        answer[8..16].copy_from_slice(&request[8..16]);
        answer[16..20].copy_from_slice(&7_u32.to_ne_bytes());
        answer[20..24].copy_from_slice(&31_u32.to_ne_bytes());
        answer[36..40].copy_from_slice(&4096_u32.to_ne_bytes());
        assert_eq!(server.write(&answer).unwrap(), answer.len());
        server
    }

    #[test]
    fn loop_x21_a_program_that_cannot_be_killed_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut server = mount_of_a_silent_server(folder.path());
        let mut reader = server.try_clone().unwrap();
        let is_waiting = AtomicBool::new(false);
        let cat = Program { name: "cat", path: "/bin/cat", package: "coreutils", is_optional: true };
        let started = Instant::now();
        let error = thread::scope(|scope| {
            scope.spawn(|| {
                assert_ne!(reader.read(&mut vec![0; 1 << 20]).unwrap(), 0);
                is_waiting.store(true, Ordering::Relaxed);
            });
            let limit = Duration::from_secs(60);
            let is_stopped = || is_waiting.load(Ordering::Relaxed);
            let conditions = Conditions { limit, is_stopped: &is_stopped, folder: None };
            cat.finish(&[folder.path().join("file")], &conditions).unwrap_err()
        });
        assert!(matches!(error, RunError::Stopped { program: "cat" }), "{error}");
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
        let children = || {
            let own = format!("/proc/self/task/{}/children", nix::unistd::gettid());
            fs::read_to_string(own).unwrap()
        };
        let stuck = children().trim().to_owned();
        let state = fs::read_to_string(format!("/proc/{stuck}/stat")).unwrap();
        assert!(state.contains("(cat) D "), "{state}");
        // The server that ends is the disk that answers.
        server.flush().unwrap();
        drop((server, reader));
        let deadline = Instant::now() + Duration::from_secs(30);
        while Path::new("/proc").join(&stuck).exists() {
            assert!(Instant::now() < deadline, "nobody waits for process {stuck}");
            thread::sleep(POLL);
        }
        umount2(folder.path(), MntFlags::MNT_DETACH).unwrap();
    }
}
