//! The QEMU process of a machine. It is known by its process-id file and the node's UUID on its
//! command line, so a conductor that starts again finds the machines of the one before.

use super::{QemuError, control};
use farrier_conductor::untrusted::log;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};
use uuid::Uuid;

/// How long QEMU may take to accept its arguments.
const START_LIMIT: Duration = Duration::from_secs(30);

/// How long QEMU may take to end after each signal.
const STOP_LIMIT: Duration = Duration::from_secs(10);

const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// A machine's process, running or not.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    folder: PathBuf,
    uuid: Uuid,
}

impl Machine {
    pub(super) fn new(folder: PathBuf, uuid: Uuid) -> Self {
        Self { folder, uuid }
    }

    /// The file that QEMU writes its process id to.
    pub(super) fn pid_file(&self) -> PathBuf {
        self.folder.join("qemu.pid")
    }

    /// The running process. A process id alone proves nothing, since they are used again.
    pub(super) fn pid(&self) -> Option<Pid> {
        let pid: i32 = std::fs::read_to_string(self.pid_file()).ok()?.trim().parse().ok()?;
        let command_line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        runs(&command_line, self.uuid).then(|| Pid::from_raw(pid))
    }

    /// Starts QEMU and returns when the machine runs. The process has its own group, so that a
    /// Ctrl-C meant for the conductor does not reach it.
    pub(super) async fn start(
        &self,
        binary: &str,
        arguments: &[String],
        link_up: bool,
    ) -> Result<(), QemuError> {
        let log = self.folder.join("qemu.log");
        let messages = File::create(&log).map_err(QemuError::file(&log))?;
        tracing::debug!(?arguments, "starting {binary}");
        let mut child = command(binary)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(messages)
            .process_group(0)
            .spawn()
            .map_err(|source| QemuError::Spawn { binary: binary.to_owned(), source })?;
        let mut to = child.stdin.take().expect("piped above");
        let mut from = BufReader::new(child.stdout.take().expect("piped above"));
        let reason = match timeout(START_LIMIT, control::let_go(&mut from, &mut to, link_up)).await {
            Ok(Ok(())) => {
                // QMP must stay connected and read for as long as QEMU runs.
                let name = self.folder.clone();
                tokio::spawn(async move {
                    let _to = to;
                    follow(from, child, &name).await;
                });
                return Ok(());
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it did not answer within {} s", START_LIMIT.as_secs()),
        };
        // Its own words are better than "the conversation ended".
        let _ = child.kill().await;
        Err(QemuError::Start { reason: log::last_line(&log).unwrap_or(reason), log })
    }

    /// Ends the process and returns when it is gone.
    pub(super) async fn stop(&self) -> Result<(), QemuError> {
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            let Some(pid) = self.pid() else { return Ok(()) };
            match kill(pid, signal) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => tracing::warn!("{signal} cannot be sent to QEMU process {pid}: {error}"),
            }
            let deadline = Instant::now() + STOP_LIMIT;
            while self.pid().is_some() && Instant::now() < deadline {
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
        }
        self.pid().map_or(Ok(()), |pid| Err(QemuError::Stop { pid: pid.as_raw() }))
    }
}

/// QEMU, which needs nothing of the conductor's environment but where programs are.
pub(super) fn command(binary: &str) -> Command {
    let mut command = Command::new(binary);
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).env("LC_ALL", "C");
    command
}

/// Whether this is the command line of the machine with that UUID. It is empty for a process that has
/// ended and was not waited for yet.
fn runs(command_line: &[u8], uuid: Uuid) -> bool {
    let words: Vec<_> = command_line.split(|byte| *byte == 0).collect();
    words.windows(2).any(|pair| pair == [b"-uuid".as_slice(), uuid.to_string().as_bytes()])
}

/// Reads QEMU's events until it ends, and waits for it.
async fn follow(from: impl tokio::io::AsyncBufRead + Unpin, mut child: Child, folder: &Path) {
    let mut lines = from.lines();
    while let Ok(Some(line)) = lines.next_line().await {
        tracing::debug!(machine = %folder.display(), "{line}");
    }
    let status = child.wait().await;
    tracing::debug!(machine = %folder.display(), ?status, "QEMU ended");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_recognised_by_its_uuid() {
        let uuid = Uuid::new_v4();
        let line = |id: Uuid| format!("qemu-system-x86_64\0-name\0n1\0-uuid\0{id}\0-S\0");
        assert!(runs(line(uuid).as_bytes(), uuid));
        assert!(!runs(line(Uuid::new_v4()).as_bytes(), uuid));
        assert!(!runs(b"", uuid));
        assert!(!runs(format!("cat\0{uuid}\0").as_bytes(), uuid));
    }

    #[tokio::test]
    async fn a_machine_without_a_process_is_off_and_stays_off() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::new(folder.path().to_owned(), Uuid::new_v4());
        assert_eq!(machine.pid(), None);
        // Our own process id, which is not that of a QEMU.
        std::fs::write(machine.pid_file(), std::process::id().to_string()).unwrap();
        assert_eq!(machine.pid(), None);
        machine.stop().await.unwrap();
    }

    #[tokio::test]
    async fn a_program_that_fails_is_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::new(folder.path().to_owned(), Uuid::new_v4());
        let missing = machine.start("/nonexistent/qemu", &[], true).await.unwrap_err();
        assert!(matches!(missing, QemuError::Spawn { .. }), "{missing}");
        let failing = machine.start("ls", &["/nonexistent/folder".into()], true).await.unwrap_err();
        assert!(failing.to_string().contains("/nonexistent/folder"), "{failing}");
    }
}
