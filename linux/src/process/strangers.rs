//! What a crashed process has left behind, seen by PID 1.
//!
//! The signal of a parent's death reaches children, and a process group those of them that stay in it. What a
//! manager or a container runtime put into a session of its own is reached by neither, and would write to a disk
//! beside the next agent.

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How often to look whether they have ended.
const POLL: Duration = Duration::from_millis(20);
/// Ancestor of the kernel's own threads and helpers.
const KTHREADD: i32 = 2;

/// A process: its parent and its state, as `/proc/PID/stat` tells them.
#[derive(Debug, Clone, Copy)]
struct Process {
    parent: i32,
    has_ended: bool,
}

/// Ends every process that comes neither from the kernel nor from one of `kept`, which the calling one started, and
/// waits until none is left. Gives the names of those that are after `limit`: what such a one waits for
/// in the kernel may still happen, but it does nothing new.
///
/// Only PID 1 may do so, and only while it starts nothing else; any other process ends none.
pub fn end_strangers(kept: &[i32], limit: Duration) -> Vec<String> {
    if getpid().as_raw() != 1 {
        return Vec::new();
    }
    let deadline = Instant::now() + limit;
    loop {
        let left = strangers(&table(Path::new("/proc")), kept);
        // New ones may come from those that have not been ended yet.
        for pid in &left {
            // It may have ended by itself.
            kill(Pid::from_raw(*pid), Signal::SIGKILL).ok();
        }
        if left.is_empty() || Instant::now() >= deadline {
            return left.into_iter().map(name).collect();
        }
        thread::sleep(POLL);
    }
}

fn strangers(table: &BTreeMap<i32, Process>, kept: &[i32]) -> Vec<i32> {
    let own = getpid().as_raw();
    let known: BTreeSet<i32> = kept.iter().copied().chain([own, KTHREADD]).collect();
    let is_kept = |pid: i32| {
        // A table that is read while processes end may hold a circle.
        let line = std::iter::successors(Some(pid), |pid| table.get(pid).map(|process| process.parent));
        let nearest = line.take(table.len() + 1).find(|pid| known.contains(pid));
        pid == own || nearest.is_some_and(|nearest| nearest != own)
    };
    let living = table.iter().filter(|(_, process)| !process.has_ended).map(|(pid, _)| *pid);
    living.filter(|pid| !is_kept(*pid)).collect()
}

fn table(proc: &Path) -> BTreeMap<i32, Process> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| {
        let stat = fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?;
        Some((pid, parse(&stat)?))
    })
    .collect()
}

/// `PID (name) state parent …`; the name may hold anything (proc(5)).
fn parse(stat: &str) -> Option<Process> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let has_ended = ["Z", "X"].contains(&fields.next()?);
    Some(Process { parent: fields.next()?.parse().ok()?, has_ended })
}

fn name(pid: i32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("{} ({pid})", name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    use std::process::Command;

    #[test]
    fn x01_a_stranger_is_told_from_the_kernels_and_the_kept_ones() {
        let own = getpid().as_raw();
        let [kept, kept_child, orphan, orphan_child, helper] =
            [1_000_001, 1_000_002, 1_000_003, 1_000_004, 1_000_005];
        let living = |parent| Process { parent, has_ended: false };
        let table = BTreeMap::from([
            (KTHREADD, living(0)),
            (own, living(0)),
            (kept, living(own)),
            (kept_child, living(kept)),
            (orphan, living(own)),
            (orphan_child, living(orphan)),
            (helper, living(KTHREADD)),
            (1_000_006, Process { parent: own, has_ended: true }),
            // Read while they ended.
            (1_000_007, living(1_000_008)),
            (1_000_008, living(1_000_007)),
        ]);
        assert_eq!(strangers(&table, &[kept]), [orphan, orphan_child, 1_000_007, 1_000_008]);
    }

    #[test]
    fn x01_a_name_may_hold_anything() {
        let process = parse("7 (a) Z 1) S 4711 7 7 0").unwrap();
        assert_eq!((process.parent, process.has_ended), (4711, false));
        assert!(parse("7 (dd) Z 1 7").unwrap().has_ended);
        assert!(parse("7 (dd").is_none());
    }

    /// As PID 1 of a process namespace, with a crashed "agent" whose child has left its session, and goes on.
    #[test]
    fn loop_x01_what_a_crashed_process_left_behind_is_ended_and_the_kept_ones_live() {
        const ALONE: &str = "FARRIER_TEST_STRANGERS";
        const NAME: &str = "process::strangers::tests::loop_x01_what_a_crashed_process_left_behind_is_ended_and_the_kept_ones_live";
        if std::env::var_os(ALONE).is_none() {
            let mut own = Command::new("unshare");
            own.args(["--pid", "--fork", "--mount-proc"]).arg(std::env::current_exe().unwrap());
            let ended = own.args(["--exact", NAME, "--test-threads=1"]).env(ALONE, "1").output().unwrap();
            assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
            return;
        }
        assert_eq!(getpid().as_raw(), 1);
        // The thread below reaps them.
        #[allow(clippy::zombie_processes)]
        let started = |script: &str| {
            let child = Command::new("/bin/sh").args(["-c", script]).spawn().unwrap();
            i32::try_from(child.id()).unwrap()
        };
        let kept = started("sleep 600 & wait");
        let agent = started("setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 600; done' & sleep 600");
        let count = || table(Path::new("/proc")).values().filter(|process| !process.has_ended).count();
        let deadline = Instant::now() + Duration::from_secs(60);
        // This process; the kept one and its child; the agent, its child, the one that left, and the child of that.
        while count() < 7 {
            assert!(Instant::now() < deadline, "{:?}", table(Path::new("/proc")));
            thread::sleep(POLL);
        }
        kill(Pid::from_raw(agent), Signal::SIGKILL).unwrap();
        let reaper = thread::spawn(|| {
            loop {
                match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                    Ok(WaitStatus::StillAlive) => thread::sleep(POLL),
                    Ok(_) => {}
                    Err(errno) => return errno,
                }
            }
        });
        assert_eq!(end_strangers(&[kept], Duration::from_secs(60)), Vec::<String>::new());
        assert_eq!(count(), 3, "{:?}", table(Path::new("/proc")));
        kill(Pid::from_raw(kept), Signal::SIGKILL).unwrap();
        end_strangers(&[], Duration::from_secs(60));
        assert_eq!(reaper.join().unwrap(), Errno::ECHILD);
    }
}
