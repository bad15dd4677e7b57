//! A machine whose QEMU is a shell script: it lets itself be started like QEMU, and lives until it is ended. When it
//! boots the ramdisk, its agent lives in the test.

use crate::agent::{Agent, Script};
use crate::site::PATIENCE;
use farrier_conductor::model::PowerState;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Hardware address of the machine.
pub const MAC: &str = "52:54:00:00:00:01";

/// The conductor's host, as the driver believes that machines see it.
const HOST_SEEN_BY_GUEST: &str = "10.0.2.2";

/// What stands for QEMU. It takes its arguments as QEMU does, answers whatever is said by QMP, writes down what it
/// boots, and then waits for a word that nobody says. A start takes long enough for the agent of the boot before to end.
const QEMU: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in
        -pidfile) pid=$2 ;;
        -append) append=$2 ;;
    esac
    shift
done
echo $$ > "$pid"
: > FOLDER/known
while [ -e FOLDER/stuck ]; do sleep 0.02; done
sleep 0.1
echo '{"QMP": {}}'
echo "$append" > FOLDER/boot.$$
mkfifo FOLDER/life.$$
while read -r line; do
    case "$line" in *'"cont"'*) break ;; esac
    echo '{"return": {}}'
done
mv FOLDER/boot.$$ FOLDER/boots/$$
echo '{"return": {}}'
exec 3<>FOLDER/life.$$
read -r word <&3
"#;

/// The machine, as its agent knows it.
#[derive(Clone)]
pub struct FakeMachine {
    pub script: Arc<Mutex<Script>>,
    folder: PathBuf,
}

impl FakeMachine {
    /// A machine that keeps its files in `folder`, and is off.
    pub fn new(folder: &Path, script: Script) -> Self {
        let folder = folder.to_owned();
        fs::create_dir_all(folder.join("boots")).unwrap();
        let machine = Self { script: Arc::new(Mutex::new(script)), folder };
        let program = QEMU.replace("FOLDER", machine.folder.to_str().unwrap());
        fs::write(machine.qemu(), program).unwrap();
        fs::set_permissions(machine.qemu(), fs::Permissions::from_mode(0o755)).unwrap();
        tokio::spawn(machine.clone().live());
        machine
    }

    /// The program that is started in place of QEMU.
    pub fn qemu(&self) -> PathBuf {
        self.folder.join("qemu")
    }

    /// Starts of the machine take until this is ended by [`Self::unstick`].
    pub fn stick(&self) {
        fs::write(self.folder.join("stuck"), "").unwrap();
    }

    pub fn unstick(&self) {
        fs::remove_file(self.folder.join("stuck")).unwrap();
    }

    /// How often it was powered on and booted something.
    pub fn boots(&self) -> usize {
        fs::read_dir(self.folder.join("boots")).unwrap().count()
    }

    /// What the process boots that is alive: kernel parameters, or nothing from the disk.
    pub fn boot(&self) -> Option<String> {
        self.process().map(|(_, parameters)| parameters)
    }

    /// The process that is alive, and what it boots.
    fn process(&self) -> Option<(i32, String)> {
        let pid = *self.pids().first()?;
        let parameters = fs::read_to_string(self.folder.join("boots").join(pid.to_string())).ok()?;
        Some((pid, parameters.trim().to_owned()))
    }

    pub fn power(&self) -> PowerState {
        let alive = self.pids();
        assert!(alive.len() <= 1, "one machine, but the processes {alive:?}");
        if alive.is_empty() { PowerState::Off } else { PowerState::On }
    }

    /// Waits until somebody powers it on, and can find its process again.
    pub async fn is_on(&self) {
        let end = Instant::now() + PATIENCE;
        while self.power() != PowerState::On || !self.folder.join("known").exists() {
            assert!(Instant::now() < end, "nobody powers the machine on");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Cuts the power, as a guest does that powers itself off.
    pub fn go_off(&self) {
        for pid in self.pids() {
            kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
        }
    }

    /// Processes of this machine. A program that the script starts looks like the script for a moment, and is none.
    pub fn pids(&self) -> Vec<i32> {
        let program = self.qemu();
        let pids = fs::read_dir("/proc").unwrap();
        let pids = pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        let is_ours = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).nth(1) == Some(program.to_str().unwrap().as_bytes())
        };
        let ours: Vec<_> = pids.filter(is_ours).collect();
        ours.iter().copied().filter(|pid| parent(*pid).is_none_or(|parent| !ours.contains(&parent))).collect()
    }

    /// Runs an agent for as long as a process lives that boots the ramdisk.
    async fn live(self) {
        let mut running: Option<(i32, tokio::task::AbortHandle)> = None;
        while self.folder.exists() {
            let boot = self.process().filter(|(_, parameters)| !parameters.is_empty());
            // Each start is another machine, whatever it boots.
            let known = running.as_ref().map(|(pid, _)| *pid);
            if known != boot.as_ref().map(|(pid, _)| *pid) {
                if let Some((_, agent)) = running.take() {
                    agent.abort();
                }
                running = boot.map(|(pid, parameters)| {
                    let url = parameters.split(' ').find_map(|word| word.strip_prefix("ipa-api-url="));
                    let url = url.unwrap().replace(HOST_SEEN_BY_GUEST, "127.0.0.1");
                    let agent = tokio::spawn(Agent::new(self.clone(), Some(url.clone()), MAC).live(None))
                        .abort_handle();
                    (pid, agent)
                });
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The parent of a process that is alive (proc(5): behind the name of the program and its state).
fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}
