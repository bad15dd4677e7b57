//! How the last agent process of this boot ended. PID 1 knows, and leaves it to the next one.

use crate::private_file;
use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use std::fs;
use std::path::Path;

/// Where PID 1 leaves it, below the root directory.
const PATH: &str = "run/farrier/agent-end";

/// Leaves it below `root`. Failing costs no more than the reason in an operator's error message.
pub fn tell(root: &Path, status: WaitStatus) {
    if let Err(error) = private_file::replace(&root.join(PATH), describe(status).as_bytes()) {
        tracing::warn!(%error, "the next agent will not know why this one ended");
    }
}

/// Why the last agent process of this boot ended, and what to do about it.
pub fn told(root: &Path) -> String {
    let unknown = "the cause is unknown: see its log".to_owned();
    fs::read_to_string(root.join(PATH)).unwrap_or(unknown)
}

fn describe(status: WaitStatus) -> String {
    match status {
        // The kernel does so when memory runs out; nobody else has a reason to.
        WaitStatus::Signaled(_, Signal::SIGKILL, _) => {
            "it was killed (SIGKILL), probably because the memory ran out: give the machine more memory, or \
             have it do less at once"
                .to_owned()
        }
        WaitStatus::Signaled(_, signal, _) => {
            format!("it crashed ({}): report this with its log", signal.as_str())
        }
        WaitStatus::Exited(_, status) => {
            format!("it stopped with status {status}: its log says why")
        }
        other => format!("it ended with {other:?}: report this with its log"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::Pid;

    #[test]
    fn x01_the_next_process_knows_how_the_last_one_ended() {
        let root = tempfile::tempdir().unwrap();
        assert!(told(root.path()).contains("the cause is unknown"));
        let pid = Pid::from_raw(4711);
        for (status, expected) in [
            (
                WaitStatus::Signaled(pid, Signal::SIGKILL, false),
                "SIGKILL), probably because the memory ran out",
            ),
            (WaitStatus::Signaled(pid, Signal::SIGSEGV, true), "it crashed (SIGSEGV)"),
            (WaitStatus::Exited(pid, 1), "it stopped with status 1"),
        ] {
            tell(root.path(), status);
            assert!(told(root.path()).contains(expected), "{}", told(root.path()));
        }
    }
}
