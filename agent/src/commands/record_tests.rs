//! What the process after a crash tells, over the real engine.

use super::*;
use crate::agent::Agent;
use crate::commands::{Command, CommandEngine, Kind, Parameter};
use crate::settings::options::Options;
use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::sleep;

const STEP: &str = "erase_devices";
/// Commands that run at a time.
const THREADS: usize = 4;

const fn command(name: &'static str, kind: Kind, run: crate::commands::Run) -> Command {
    Command { name, help: "", kind, parameters: &[Parameter::OTHERS], validate: None, run }
}

/// One of each kind of end, and two without.
const COMMANDS: &[Command] = &[
    command("execute_clean_step", Kind::Async, |_, _| endless()),
    command("inquire", Kind::Sync, |_, _| endless()),
    command("succeed", Kind::Async, |_, params| {
        Ok(json!({"deploy_result": 1, "deploy_step": params["step"]}))
    }),
    command("fail", Kind::Async, |_, _| Err(CommandError::new(ErrorKind::ImageWriteError, "no space left"))),
    command("mismatch", Kind::Async, |_, _| Err(CommandError::new(ErrorKind::VersionMismatch, "1 and 2"))),
];

/// A thread that works on when its agent is given up; that of a dead process would not.
fn endless() -> Result<Value, CommandError> {
    loop {
        std::thread::park();
    }
}

fn find(_: &str, name: &str) -> Result<&'static Command, CommandError> {
    Ok(COMMANDS.iter().find(|one| one.name == name).unwrap())
}

/// An agent process: a runtime of its own, which ends without waiting for anybody.
struct Process {
    runtime: Runtime,
    engine: Arc<CommandEngine>,
}

impl Process {
    fn start(root: &Path) -> Self {
        crate::network::http::install_tls_provider();
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(THREADS)
            .enable_all()
            .build()
            .unwrap();
        let agent = Agent::new(Options::default(), root, Handle::clone(runtime.handle())).unwrap();
        Self { runtime, engine: CommandEngine::new(agent, find) }
    }

    fn submit(&self, name: &str, wait: bool) -> CommandResult {
        let step = json!({"step": STEP, "interface": "deploy", "args": {"configdrive": "secret"}});
        let request = json!({"name": format!("test.{name}"), "params": {"step": step}});
        let answer = self.runtime.block_on(self.engine.submit(request, None, wait)).unwrap();
        serde_json::from_slice(&answer).unwrap()
    }

    fn list(&self) -> Vec<CommandResult> {
        self.engine.list().iter().map(|text| serde_json::from_slice(text).unwrap()).collect()
    }

    /// Ends it like a crash: whoever runs is not asked.
    fn crash(self, root: &Path, status: WaitStatus) {
        self.runtime.shutdown_background();
        agent_end::tell(root, status);
    }
}

fn killed() -> WaitStatus {
    WaitStatus::Signaled(Pid::from_raw(4711), Signal::SIGKILL, false)
}

#[test]
fn x01_what_ran_in_a_process_that_was_killed_has_failed_in_the_next() {
    let root = tempfile::tempdir().unwrap();
    let first = Process::start(root.path());
    let running = first.submit("execute_clean_step", false);
    let mode = fs::metadata(root.path().join(PATH)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    first.crash(root.path(), killed());

    let second = Process::start(root.path());
    let told = second.list();
    let [failed] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((failed.id, failed.command_name.as_str()), (running.id, "execute_clean_step"));
    assert_eq!((&failed.command_status, &failed.command_result), (&CommandStatus::Failed, &None));
    let error = failed.command_error.as_ref().unwrap();
    assert_eq!((error.kind.as_str(), error.code), ("CommandExecutionError", 500));
    for part in ["execute_clean_step", STEP, "SIGKILL", "memory ran out", "start the operation again"] {
        assert!(error.details.contains(part), "{part}: {}", error.details);
    }
    // A crash of another kind before anybody has asked does not change the reason.
    second.crash(root.path(), WaitStatus::Exited(Pid::from_raw(4712), 1));
    let third = Process::start(root.path());
    assert_eq!(third.list()[0].command_error.as_ref(), Some(error));
    // The history goes on.
    assert_eq!(third.submit("succeed", true).command_status, CommandStatus::Succeeded);
    assert_eq!(third.list().len(), 2);
}

/// On a machine that is busy, a command waits for its thread.
#[test]
fn x01_what_had_not_begun_when_its_process_ended_has_failed_in_the_next() {
    let root = tempfile::tempdir().unwrap();
    let first = Process::start(root.path());
    (0..THREADS).for_each(|_| drop(first.runtime.spawn_blocking(endless)));
    first.submit("execute_clean_step", false);
    first.crash(root.path(), killed());
    let told = Process::start(root.path()).list().remove(0);
    let error = told.command_error.unwrap();
    assert!(error.details.contains("SIGKILL"), "{}", error.details);
}

#[test]
fn x01_an_outcome_that_nobody_has_fetched_is_there_after_a_crash() {
    for (name, status) in [
        ("succeed", CommandStatus::Succeeded),
        ("fail", CommandStatus::Failed),
        ("mismatch", CommandStatus::CleanVersionMismatch),
    ] {
        let root = tempfile::tempdir().unwrap();
        let first = Process::start(root.path());
        let ended = first.submit(name, true);
        first.crash(root.path(), killed());
        let second = Process::start(root.path());
        let told = second.list().remove(0);
        assert_eq!((told.id, &told.command_status), (ended.id, &status));
        assert_eq!(told.command_error, ended.command_error);
        if name == "succeed" {
            // As much of it as conductors look at.
            let step = json!({"step": STEP, "interface": "deploy"});
            assert_eq!(told.command_result, Some(json!({"deploy_result": 1, "deploy_step": step})));
        }
    }
}

#[test]
fn x01_a_synchronous_command_hides_no_outcome_and_leaves_none() {
    let root = tempfile::tempdir().unwrap();
    let first = Process::start(root.path());
    let ended = first.submit("fail", true);
    let engine = Arc::clone(&first.engine);
    first.runtime.spawn(async move {
        engine.submit(json!({"name": "test.inquire", "params": {}}), None, true).await.ok();
    });
    first.runtime.block_on(async {
        while first.engine.list().len() < 2 {
            sleep(Duration::from_millis(1)).await;
        }
    });
    first.crash(root.path(), killed());
    let told = Process::start(root.path()).list();
    assert_eq!(told.iter().map(|one| one.id).collect::<Vec<_>>(), [ended.id]);
}

#[test]
fn x01_what_cannot_be_recorded_is_not_begun() {
    let root = tempfile::tempdir().unwrap();
    let process = Process::start(root.path());
    fs::write(root.path().join("run"), "in the way").unwrap();
    // It would never end.
    let refused = process.submit("execute_clean_step", true);
    assert_eq!(refused.command_status, CommandStatus::Failed);
    let details = refused.command_error.unwrap().details;
    assert!(details.contains("was not begun") && details.contains(PATH), "{details}");
}

#[test]
fn g10_a_record_that_cannot_be_read_is_a_failed_command() {
    let root = tempfile::tempdir().unwrap();
    let first = Process::start(root.path());
    first.submit("succeed", true);
    first.crash(root.path(), killed());
    let path = root.path().join(PATH);
    let whole = fs::read(&path).unwrap();
    for (content, name) in [
        (Vec::new(), WORST),
        (whole[..whole.len() - 1].to_vec(), "succeed"),
        (whole[..whole.len() / 8].to_vec(), WORST),
        (vec![0; whole.len()], WORST),
        (b"{}".to_vec(), WORST),
        (b"null".to_vec(), WORST),
        ([&whole[..], b"}"].concat(), "succeed"),
    ] {
        fs::write(&path, &content).unwrap();
        let process = Process::start(root.path());
        let told = process.list();
        let [failed] = told.as_slice() else { panic!("{told:?}") };
        let shown = String::from_utf8_lossy(&content);
        assert_eq!(
            (failed.command_name.as_str(), &failed.command_status),
            (name, &CommandStatus::Failed),
            "{shown}"
        );
        let error = failed.command_error.as_ref().unwrap();
        assert!(error.details.contains(PATH) && error.details.contains("again"), "{}", error.details);
        // The next command is accepted, and known after the next crash.
        assert_eq!(process.submit("fail", true).command_status, CommandStatus::Failed);
        process.crash(root.path(), killed());
        assert_eq!(Process::start(root.path()).list().len(), 1);
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(Process::start(root.path()).list()[0].command_status, CommandStatus::Failed);
    fs::remove_dir(&path).unwrap();
    assert_eq!(Process::start(root.path()).list().len(), 0, "nothing ran");
}
