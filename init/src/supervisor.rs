//! The children of PID 1: the agent and one DHCP client per link; once the machine is rescued, a login
//! prompt per console and an SSH server instead of the agent.

use crate::events::{Change, Event};
use crate::hand_over::{login, ssh, traces};
use crate::lockdown::Stopped;
use crate::network::{dhcp_client, dhcp_event};
use crate::{agent_end, panic_guard};
use farrier_linux::process::{self, BUSYBOX, DROPBEAR};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// First pause before a child is started again; doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// A child that ran this long had started well.
const STABLE: Duration = Duration::from_secs(60);
/// Longest sleep of the main loop, so that nothing depends on a lost event.
const IDLE: Duration = Duration::from_secs(60);
/// Time for what a dead agent left behind to end. What takes longer waits for a device, and does nothing new.
const PARTING: Duration = Duration::from_secs(30);
/// Of all processes the kernel ends the agent last when memory runs out, but rather the agent than that it panics: a
/// machine that reboots by itself in the middle of a step looks like one that has done it.
const OOM_SCORE: &str = "-999";

/// Held while a child is started or children are reaped. The standard library waits by itself for a child that
/// could not execute its program, and panics when somebody else has reaped it.
static CHILDREN: Mutex<()> = Mutex::new(());

/// A job that must always run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Job {
    Agent,
    Dhcp(String),
    Login(String),
    Ssh,
}

#[derive(Debug)]
struct State {
    started: Instant,
    pause: Duration,
    /// Set while the job is down.
    due: Option<Instant>,
}

/// Starts jobs, and starts them again when they end.
pub struct Supervisor {
    events: Receiver<Event>,
    network: Sender<Change>,
    jobs: BTreeMap<Job, State>,
    children: HashMap<i32, Job>,
}

impl Supervisor {
    /// A supervisor that has nothing to start yet, and reports changes to the network.
    pub fn new(events: Receiver<Event>, network: Sender<Change>) -> Self {
        Self { events, network, jobs: BTreeMap::new(), children: HashMap::new() }
    }

    /// Runs until the threads that send events are gone, which they never are.
    pub fn run(&mut self) {
        panic_guard::rounds("the supervisor", || self.turn());
    }

    fn turn(&mut self) -> ControlFlow<()> {
        self.start_due();
        match self.events.recv_timeout(self.sleep()) {
            Ok(Event::Exited(pid, status)) => self.exited(pid, status),
            Ok(Event::MediaRead) => self.add(Job::Agent),
            Ok(Event::Dhcp(name)) => self.add(Job::Dhcp(name)),
            Ok(Event::NoDhcp(name)) => self.end(&Job::Dhcp(name)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    fn add(&mut self, job: Job) {
        let now = Instant::now();
        self.jobs.entry(job).or_insert(State { started: now, pause: FIRST_PAUSE, due: Some(now) });
    }

    /// Ends a job for good.
    fn end(&mut self, job: &Job) {
        self.jobs.remove(job);
        let pids: Vec<i32> =
            self.children.iter().filter(|(_, owner)| *owner == job).map(|(pid, _)| *pid).collect();
        for pid in pids {
            self.children.remove(&pid);
            // It may have ended by itself.
            kill(Pid::from_raw(pid), Signal::SIGTERM).ok();
        }
    }

    fn start_due(&mut self) {
        let now = Instant::now();
        for (job, state) in &mut self.jobs {
            if state.due.is_none_or(|due| due > now) {
                continue;
            }
            match start(job) {
                Ok(pid) => {
                    state.started = now;
                    state.due = None;
                    self.children.insert(pid, job.clone());
                }
                Err(error) => {
                    tracing::error!("{error}");
                    state.postpone(now);
                }
            }
        }
    }

    fn exited(&mut self, pid: i32, status: WaitStatus) {
        // Orphans of other processes end up here too.
        let Some(job) = self.children.remove(&pid) else { return };
        if job == Job::Agent {
            agent_end::tell(Path::new("/"), status);
            self.clear_up();
        }
        if job == Job::Agent && Stopped::marked(Path::new("/")) == Some(Stopped::Rescued) {
            return self.hand_over();
        }
        let Some(state) = self.jobs.get_mut(&job) else { return };
        let now = Instant::now();
        if now.duration_since(state.started) >= STABLE {
            state.pause = FIRST_PAUSE;
        }
        let seconds = state.pause.as_secs();
        tracing::error!(?job, ?status, "ended; starting it again in {seconds} s");
        state.postpone(now);
    }

    /// Ends what the agent began: two would write to one disk when the next one is told to.
    fn clear_up(&self) {
        let kept: Vec<i32> = self.children.keys().copied().collect();
        let left = process::end_strangers(&kept, PARTING);
        if !left.is_empty() {
            tracing::error!("these do not end, and wait for devices that do not answer: {}", left.join(", "));
        }
    }

    /// The machine is its user's until the next boot.
    fn hand_over(&mut self) {
        self.jobs.remove(&Job::Agent);
        traces::remove(Path::new("/"));
        if let Err(error) = login::open(Path::new("/")) {
            tracing::error!("login is not available: the account rescue cannot be created: {error}");
        }
        // The receiver lives as long as PID 1.
        self.network.send(Change::Rescued).ok();
        let active = std::fs::read_to_string("/sys/class/tty/console/active").unwrap_or_default();
        for terminal in login::terminals(&active) {
            self.add(Job::Login(terminal));
        }
        let line = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
        let root = Path::new("/");
        match ssh::authorise(root, &line).and_then(|()| ssh::make_host_key(root)) {
            Ok(fingerprint) => {
                tracing::info!("rescue may log in by SSH; the host key's fingerprint is {fingerprint}");
                self.add(Job::Ssh);
            }
            Err(error) => tracing::error!(%error, "SSH login is not available: use a console"),
        }
    }

    /// Time until the next job is due.
    fn sleep(&self) -> Duration {
        let next = self.jobs.values().filter_map(|state| state.due).min();
        next.map_or(IDLE, |due| due.saturating_duration_since(Instant::now()).min(IDLE))
    }
}

impl State {
    fn postpone(&mut self, now: Instant) {
        self.due = Some(now + self.pause);
        self.pause = (self.pause * 2).min(MAX_PAUSE);
    }
}

fn start(job: &Job) -> anyhow::Result<i32> {
    let child = alone(|| start_child(job))?;
    Ok(i32::try_from(child.id())?)
}

fn start_child(job: &Job) -> anyhow::Result<Child> {
    Ok(match job {
        Job::Agent => start_agent()?,
        Job::Dhcp(interface) => BUSYBOX.spawn(dhcp_client::arguments(interface, dhcp_event::PROGRAM))?,
        // A serial line keeps its speed and has no carrier to wait for.
        Job::Login(terminal) => BUSYBOX.spawn(["getty", "-L", "0", terminal, "vt100"])?,
        Job::Ssh => DROPBEAR.spawn(ssh::ARGUMENTS)?,
    })
}

fn start_agent() -> std::io::Result<Child> {
    let agent = process::spawn_self(["run", "--log", "consoles"])?;
    if let Err(error) = std::fs::write(format!("/proc/{}/oom_score_adj", agent.id()), OOM_SCORE) {
        tracing::warn!(%error, "the agent may be ended as the first one when memory runs out");
    }
    Ok(agent)
}

/// Does this while nobody else starts or reaps children.
fn alone<T>(work: impl FnOnce() -> T) -> T {
    let _children = CHILDREN.lock().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Starts the thread that reaps children. All children are reaped there, and nowhere else.
pub fn start_reaper(sender: Sender<Event>) {
    // Blocked here, in the parent of all later threads, and taken by the waiting one alone.
    let signals = SigSet::from(Signal::SIGCHLD);
    if let Err(error) = signals.thread_block() {
        tracing::error!(%error, "the signal of ending children cannot be blocked");
    }
    thread::spawn(move || {
        panic_guard::rounds("the reaper", || {
            alone(|| reap_all(&sender));
            signals.wait().ok();
            ControlFlow::Continue(())
        });
    });
}

fn reap_all(sender: &Sender<Event>) {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return,
            Ok(status) => {
                if let Some(pid) = status.pid() {
                    sender.send(Event::Exited(pid.as_raw(), status)).ok();
                }
            }
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_linux::process::Program;

    /// In a process of its own, for the reaper takes the children of all tests.
    #[test]
    fn a_program_that_cannot_be_executed_is_an_error_and_no_panic() {
        const ALONE: &str = "FARRIER_TEST_REAPER";
        const NAME: &str = "supervisor::tests::a_program_that_cannot_be_executed_is_an_error_and_no_panic";
        if std::env::var_os(ALONE).is_none() {
            let mut own = std::process::Command::new(std::env::current_exe().unwrap());
            let ended = own.args(["--exact", NAME]).env(ALONE, "1").output().unwrap();
            assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
            return;
        }
        let absent = Program { path: "/nonexistent/busybox", ..BUSYBOX };
        let (sender, _events) = std::sync::mpsc::channel();
        // The harness' own thread takes the signal; this one looks all the time.
        thread::spawn(move || {
            loop {
                alone(|| reap_all(&sender));
            }
        });
        for _ in 0..500 {
            assert!(alone(|| absent.spawn(["getty"])).is_err());
        }
    }

    #[test]
    fn x25_a_defect_loses_neither_jobs_nor_children() {
        let (sender, events) = std::sync::mpsc::channel();
        let mut supervisor = Supervisor::new(events, std::sync::mpsc::channel().0);
        supervisor.jobs.insert(Job::Agent, State { started: Instant::now(), pause: FIRST_PAUSE, due: None });
        supervisor.children.insert(i32::MAX, Job::Agent);
        // A pause that overflows when it is doubled: adding to the time panics.
        let broken = State { started: Instant::now(), pause: Duration::MAX, due: None };
        supervisor.jobs.insert(Job::Dhcp("eth0".into()), broken);
        supervisor.children.insert(i32::MAX - 1, Job::Dhcp("eth0".into()));
        let ended = WaitStatus::Exited(Pid::from_raw(i32::MAX - 1), 1);
        sender.send(Event::Exited(i32::MAX - 1, ended)).unwrap();
        sender.send(Event::MediaRead).unwrap();
        drop(sender);
        supervisor.run();
        assert!(supervisor.jobs[&Job::Agent].due.is_none(), "a second agent would be started");
        assert_eq!(supervisor.children.get(&i32::MAX), Some(&Job::Agent));
    }

    #[test]
    fn pauses_double_up_to_a_bound() {
        let now = Instant::now();
        let mut state = State { started: now, pause: FIRST_PAUSE, due: None };
        let mut pauses = Vec::new();
        for _ in 0..7 {
            state.postpone(now);
            pauses.push(state.due.unwrap().duration_since(now).as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn a_link_that_is_reported_twice_has_one_client() {
        let (_sender, events) = std::sync::mpsc::channel();
        let mut supervisor = Supervisor::new(events, std::sync::mpsc::channel().0);
        supervisor.add(Job::Dhcp("eth0".into()));
        supervisor.add(Job::Dhcp("eth0".into()));
        assert_eq!(supervisor.jobs.len(), 1);
        supervisor.end(&Job::Dhcp("eth0".into()));
        assert!(supervisor.jobs.is_empty());
    }
}
