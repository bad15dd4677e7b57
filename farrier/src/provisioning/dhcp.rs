//! Our dnsmasq: configured, watched, and restarted after a change or an exit.
//!
//! It knows its leases from their file, and is away for a tenth of a second. Firmware asks again.
//!
//! It has the user of this process, and of its rights those that a server of DHCP needs. Where this process is root's, it
//! has a user without rights, who cannot enter the state directory: it opens its leases before it becomes that user, and
//! reads options and hosts from copies.

use crate::failure::{DNSMASQ_FAILED, WithCode};
use crate::provisioning::rights::with_rights_of_dhcp;
use anyhow::Context;
use farrier_drivers::dhcp::dnsmasq::Places;
use farrier_drivers::dhcp::lease::{Lease, Log};
use farrier_drivers::dhcp::site::Site;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{AccessFlags, Pid, User, access, geteuid};
use rand::Rng;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

/// How long it may take to begin.
const BEGIN: Duration = Duration::from_secs(30);
/// The first pause before it is started again, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// The run time after which the pauses start again.
const STEADY: Duration = Duration::from_secs(60);
/// How long a change waits for others, since many nodes may change together.
const TOGETHER: Duration = Duration::from_millis(100);
/// How long it may take to end.
const END: Duration = Duration::from_secs(5);
/// What it says when it is ready.
const READY: &str = ": DHCP, ";
/// Users without rights, the first of which that there is.
const USERS: [&str; 2] = ["dnsmasq", "nobody"];
/// Folders that every user can enter, for files that every user may read until a reboot.
const PUBLIC: [&str; 2] = ["/run", "/tmp"];

/// A dnsmasq that runs.
pub(crate) struct Dhcp {
    configuration: PathBuf,
    copies: Option<Copies>,
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
    /// Configures and starts it. The options of nodes stay.
    pub(crate) async fn start(
        site: &Site,
        folder: &Path,
        places: &Places,
        changed: Arc<Notify>,
    ) -> anyhow::Result<Self> {
        for made in [folder, &places.hosts, &places.options] {
            fs::create_dir_all(made).with_context(|| format!("{} cannot be created", made.display()))?;
        }
        let configuration = folder.join("dnsmasq.conf");
        let copies = if geteuid().is_root() { Some(Copies::of(places)?) } else { None };
        let text = match &copies {
            Some(copies) => format!("user={}\n{}", copies.user, site.configuration(&copies.places)),
            None => site.configuration(places),
        };
        fs::write(&configuration, text)
            .with_context(|| format!("{} cannot be written", configuration.display()))?;
        let running = Running::start(&configuration, copies.as_ref()).await.code(DNSMASQ_FAILED)?;
        Ok(Self { configuration, copies, interface: site.interface.clone(), changed, running })
    }

    /// The network interface that it serves.
    pub(crate) fn interface(&self) -> &str {
        &self.interface
    }

    /// Keeps it running, and reports each lease, until this is dropped.
    pub(crate) async fn serve(mut self, mut leased: impl FnMut(Lease)) {
        let mut pause = PAUSES.0;
        loop {
            let begin = Instant::now();
            if let Some(status) = self.running.attend(&self.changed, &mut leased).await {
                tracing::error!("dnsmasq exited ({status}); restarting it");
                if begin.elapsed() > STEADY {
                    pause = PAUSES.0;
                }
                sleep(pause.mul_f64(rand::rng().random_range(0.75..1.25))).await;
                pause = (pause * 2).min(PAUSES.1);
            }
            self.running.stop().await;
            self.running = loop {
                match Running::start(&self.configuration, self.copies.as_ref()).await {
                    Ok(running) => break running,
                    Err(error) => tracing::error!("{error:#}"),
                }
                sleep(pause.mul_f64(rand::rng().random_range(0.75..1.25))).await;
                pause = (pause * 2).min(PAUSES.1);
            };
        }
    }
}

/// What a dnsmasq of another user reads, as it was when that began.
struct Copies {
    user: String,
    own: Places,
    /// Where the copies are, and all else as it was.
    places: Places,
    folder: PathBuf,
}

impl Copies {
    fn of(own: &Places) -> anyhow::Result<Self> {
        let user = USERS.into_iter().find(|name| User::from_name(name).is_ok_and(|user| user.is_some()));
        let user = user.with_context(|| {
            format!("there is no unprivileged user for dnsmasq; add one of {}", USERS.join(", "))
        })?;
        let public = PUBLIC.into_iter().find(|folder| access(*folder, AccessFlags::W_OK).is_ok());
        let public =
            public.context("no folder for the files of dnsmasq can be created; is /tmp writable?")?;
        let name = format!("farrier-dnsmasq-{}", hex::encode(rand::random::<[u8; 8]>()));
        let folder = Path::new(public).join(name);
        let [hosts, options] = ["hosts", "options"].map(|name| folder.join(name));
        let places = Places { hosts, options, ..own.clone() };
        Ok(Self { user: user.to_owned(), own: own.clone(), places, folder })
    }

    /// Replaces them by copies of the current files.
    fn make(&self) -> io::Result<()> {
        self.remove()?;
        DirBuilder::new().mode(0o755).create(&self.folder)?;
        for (from, to) in [(&self.own.hosts, &self.places.hosts), (&self.own.options, &self.places.options)] {
            DirBuilder::new().mode(0o755).create(to)?;
            fs::set_permissions(to, Permissions::from_mode(0o755))?;
            for entry in fs::read_dir(from)? {
                let entry = entry?;
                let copy = to.join(entry.file_name());
                fs::copy(entry.path(), &copy)?;
                fs::set_permissions(&copy, Permissions::from_mode(0o644))?;
            }
        }
        fs::set_permissions(&self.folder, Permissions::from_mode(0o755))
    }

    fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            tracing::debug!(folder = %self.folder.display(), "is left: {error}");
        }
    }
}

impl Running {
    async fn start(configuration: &Path, copies: Option<&Copies>) -> anyhow::Result<Self> {
        if let Some(copies) = copies {
            let folder = copies.folder.display();
            copies.make().with_context(|| format!("{folder} for the files of dnsmasq cannot be created"))?;
        }
        let mut command = Command::new("dnsmasq");
        command.arg(format!("--conf-file={}", configuration.display()));
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).env("LC_ALL", "C");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let runtime = Handle::current();
        let started = with_rights_of_dhcp(|| {
            let _runtime = runtime.enter();
            command.spawn()
        });
        let mut child = started.context("dnsmasq cannot be started; install it (Debian: dnsmasq-base)")?;
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
            _ => Err(anyhow::anyhow!("dnsmasq failed to start: {}", said.join("; "))),
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
