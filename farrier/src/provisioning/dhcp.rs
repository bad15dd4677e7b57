//! A dnsmasq of our own: configured, watched, and started again when something has changed, or it ends.
//!
//! It knows its leases from their file, and is away for a tenth of a second. Firmware asks again.

use anyhow::Context;
use farrier_drivers::dhcp::dnsmasq::Places;
use farrier_drivers::dhcp::lease::{Lease, Log};
use farrier_drivers::dhcp::site::Site;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};
use rand::Rng;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

/// How long it may take to begin.
const BEGIN: Duration = Duration::from_secs(30);
/// The first pause before it is started again, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long it has to run for the pauses to begin anew.
const STEADY: Duration = Duration::from_secs(60);
/// How long a change waits for others, since many nodes may change together.
const TOGETHER: Duration = Duration::from_millis(100);
/// How long it may take to end.
const END: Duration = Duration::from_secs(5);
/// What it says when it is ready.
const READY: &str = ": DHCP, ";

/// A dnsmasq that runs.
pub(crate) struct Dhcp {
    configuration: PathBuf,
    interface: String,
    changed: Arc<Notify>,
    running: Running,
}

struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    log: Log,
}

impl Dhcp {
    /// Configures it, and starts it. What was told of nodes before stays told.
    pub(crate) async fn start(
        site: &Site,
        folder: &Path,
        places: &Places,
        changed: Arc<Notify>,
    ) -> anyhow::Result<Self> {
        for made in [folder, &places.hosts, &places.options] {
            std::fs::create_dir_all(made).with_context(|| format!("{} cannot be made", made.display()))?;
        }
        // The folder is for its owner alone, so it has to stay that.
        let user = User::from_uid(geteuid()).ok().flatten().map_or("root".to_owned(), |user| user.name);
        let configuration = folder.join("dnsmasq.conf");
        std::fs::write(&configuration, format!("user={user}\n{}", site.configuration(places)))
            .with_context(|| format!("{} cannot be written", configuration.display()))?;
        let running = Running::start(&configuration).await?;
        Ok(Self { configuration, interface: site.interface.clone(), changed, running })
    }

    /// The network interface that it serves.
    pub(crate) fn interface(&self) -> &str {
        &self.interface
    }

    /// Keeps it running, and tells of each address that it gives, until this is dropped.
    pub(crate) async fn serve(mut self, mut leased: impl FnMut(Lease)) {
        let mut pause = PAUSES.0;
        loop {
            let begin = Instant::now();
            if let Some(status) = self.running.attend(&self.changed, &mut leased).await {
                tracing::error!("dnsmasq ended ({status}); it is started again");
                if begin.elapsed() > STEADY {
                    pause = PAUSES.0;
                }
                sleep(pause.mul_f64(rand::rng().random_range(0.75..1.25))).await;
                pause = (pause * 2).min(PAUSES.1);
            }
            self.running.stop().await;
            self.running = loop {
                match Running::start(&self.configuration).await {
                    Ok(running) => break running,
                    Err(error) => tracing::error!("{error:#}"),
                }
                sleep(pause.mul_f64(rand::rng().random_range(0.75..1.25))).await;
                pause = (pause * 2).min(PAUSES.1);
            };
        }
    }
}

impl Running {
    async fn start(configuration: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new("dnsmasq");
        command.arg(format!("--conf-file={}", configuration.display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child =
            command.spawn().context("dnsmasq cannot be started; install it (Debian: dnsmasq-base)")?;
        let errors = child.stderr.take().context("dnsmasq says nothing")?;
        let mut lines = BufReader::new(errors).lines();
        let mut said = Vec::new();
        let ready = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if line.contains(READY) {
                    return true;
                }
                said.push(line);
            }
            false
        };
        match timeout(BEGIN, ready).await {
            Ok(true) => Ok(Self { child, lines, log: Log::default() }),
            _ => Err(anyhow::anyhow!("dnsmasq did not begin: {}", said.join("; "))),
        }
    }

    /// Listens until something has changed, or until it ends, and with what.
    async fn attend(&mut self, changed: &Notify, leased: &mut impl FnMut(Lease)) -> Option<String> {
        loop {
            tokio::select! {
                line = self.lines.next_line() => match line {
                    Ok(Some(line)) => {
                        tracing::debug!("{line}");
                        self.log.lease(&line).into_iter().for_each(&mut *leased);
                    }
                    Ok(None) | Err(_) => {
                        let ended = self.child.wait().await;
                        return Some(ended.map_or_else(|error| error.to_string(), |status| status.to_string()));
                    }
                },
                () = changed.notified() => {
                    sleep(TOGETHER).await;
                    return None;
                }
            }
        }
    }

    /// Ends it, if it has not ended.
    async fn stop(&mut self) {
        if let Some(pid) = self.child.id() {
            kill(Pid::from_raw(pid.cast_signed()), Signal::SIGTERM).ok();
            if timeout(END, self.child.wait()).await.is_err() {
                self.child.kill().await.ok();
            }
        }
    }
}
