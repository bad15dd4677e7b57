//! How long processes kept a processor busy, which says more than a clock where others work too.

use std::fs;
use std::process::Child;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

/// The unit of the kernel's figures, in a second, on every architecture.
const TICKS: u64 = 100;
/// Where in `/proc/PID/stat`, counted behind the name of the program, the four times begin (proc(5)): its own in user
/// mode and in the kernel, and the same of all that it started and waited for.
const TIMES: usize = 11;

/// Waits until a process has ended, without taking its status, and tells what it and all that it waited for took.
///
/// # Errors
///
/// It was waited for already.
pub fn of_ended(process: &Child) -> Result<Duration> {
    let id = Pid::from_raw(process.id().cast_signed());
    waitid(Id::Pid(id), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).context("cannot wait for a process")?;
    read(&id.to_string())
}

/// What this process has taken so far, and all that it waited for.
///
/// # Errors
///
/// The kernel does not tell.
pub fn of_this() -> Result<Duration> {
    read("self")
}

/// What a process that runs has taken so far, and all that it waited for.
///
/// # Errors
///
/// There is no such process.
pub fn of(process: u32) -> Result<Duration> {
    read(&process.to_string())
}

fn read(process: &str) -> Result<Duration> {
    let file = format!("/proc/{process}/stat");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    parse(&text).with_context(|| format!("{file} has no times: {text}"))
}

/// The sum of the four times. The program's name, in parentheses, may hold anything.
fn parse(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let times: Vec<u64> =
        fields.split_whitespace().skip(TIMES).take(4).map_while(|field| field.parse().ok()).collect();
    (times.len() == 4).then(|| Duration::from_millis(times.iter().sum::<u64>() * (1000 / TICKS)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::command::command;

    #[test]
    fn the_four_times_are_added_whatever_the_program_is_called() {
        for (stat, expected) in [
            ("1 (a) b) Z 1 2 3 4 5 6 7 8 9 10 100 20 3 1 0 0", Some(1240)),
            ("1 (a) Z 1 2 3 4 5 6 7 8 9 10 100 20", None),
            ("1 a", None),
        ] {
            assert_eq!(parse(stat), expected.map(Duration::from_millis), "{stat}");
        }
    }

    #[test]
    fn what_a_process_and_its_children_took_is_told_when_it_has_ended() {
        let count = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        let mut busy = command("sh").args(["-c", &format!("sh -c '{count}'; {count}")]).spawn().unwrap();
        let taken = of_ended(&busy).unwrap();
        assert!(busy.wait().unwrap().success());
        assert!(taken > Duration::from_millis(20), "{taken:?}");
        let mut idle = command("sleep").arg("0.3").spawn().unwrap();
        let taken = of_ended(&idle).unwrap();
        assert!(idle.wait().unwrap().success() && taken < Duration::from_millis(200), "{taken:?}");
    }
}
