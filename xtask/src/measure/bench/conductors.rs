//! Two conductors that know the same nodes, each on SQLite.
//!
//! All have a token by now. In Farrier all are held: a heartbeat is written down and sets nothing off, and a lookup is
//! answered. Ironic answers no lookup of a held node, so there one half of them, those with odd numbers, waits for its
//! agent: heartbeats go to the half that is held, lookups to the half that waits.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use farrier_conductor::model::{AgentSession, NewNode, Node, ProvisionState};
use farrier_engine::store::sqlite::SqliteStore;
use farrier_engine::store::{Change, NodeStore, SessionChange, Terms};
use farrier_tests::conductor::ironic::{Cleaning, Ironic};
use farrier_tests::machine::free_port;
use time::OffsetDateTime;

use crate::build::ironic_environment;
use crate::host::command::{command, run_quietly};
use crate::host::processor_time;
use crate::host::workspace::Workspace;

/// The release of Ironic that is measured.
pub const RIVAL: &str = "39.0.0";
/// The token of every agent.
pub const TOKEN: &str = "T0123456789012345678901234567890123456789012";
/// The address of every agent.
pub const CALLBACK_URL: &str = "https://127.0.0.1:9999";
/// The first hardware address.
const FIRST_ADDRESS: u64 = 0x5254_0000_0000;
/// Time for a conductor to start.
const START: Duration = Duration::from_secs(120);

/// The identity of a node.
pub fn identity(number: u64) -> String {
    format!("00000000-0000-0000-0000-{:012x}", number + 1)
}

/// The hardware address of a node.
pub fn address(number: u64) -> String {
    let bytes = (FIRST_ADDRESS + number).to_be_bytes();
    bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// What a conductor knows before it starts. In Ironic every other node waits for a call, as its agent looks it up.
#[derive(Debug, Clone, Copy)]
pub struct Nodes {
    /// How many.
    pub count: u64,
    /// The state of the others.
    pub state: ProvisionState,
}

/// The reference conductor, until it is dropped.
pub struct Farrier {
    process: Child,
    /// Port of the API that agents call.
    pub port: u16,
    /// Port of the API that operators call, without TLS and identity, as that of the rival.
    pub admin_port: u16,
}

impl Farrier {
    /// Starts it over a database with these nodes.
    pub fn start(program: &Path, folder: &Path, nodes: Nodes) -> Result<Self> {
        let database = folder.join("nodes.sqlite");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(fill(&database, nodes))?;
        Self::start_over(program, folder, &database, &[], None)
    }

    /// Starts it over a database, with its other state in a folder, further options, and this filter of its log, which goes
    /// to `farrier.log`.
    pub fn start_over(
        program: &Path,
        folder: &Path,
        database: &Path,
        options: &[&str],
        filter: Option<&str>,
    ) -> Result<Self> {
        let (port, admin_port) = (free_port()?, free_port()?);
        let (output, log) = (folder.join("farrier.out"), folder.join("farrier.log"));
        let process = Command::new(program)
            .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
            .args(["--admin-listen", &format!("127.0.0.1:{admin_port}")])
            .args(["--admin-plain-http", "--auth-strategy", "noauth"])
            .args(["--enabled-hardware-types", "fake-hardware"])
            .arg("--state-dir")
            .arg(folder)
            .arg("--database")
            .arg(database)
            .args(options)
            .envs(filter.map(|filter| ("FARRIER_LOG", filter)))
            .stdin(Stdio::null())
            .stdout(File::create(&output)?)
            .stderr(File::create(&log)?)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut farrier = Self { process, port, admin_port };
        let start = Instant::now();
        while !fs::read_to_string(&output)?.contains("node API listening") {
            if start.elapsed() > START || farrier.process.try_wait()?.is_some() {
                bail!("farrier serve did not start:\n{}", fs::read_to_string(&log)?);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(farrier)
    }

    /// The most memory that it ever had, in KiB.
    pub fn peak_kib(&self) -> Result<u64> {
        peak_kib(self.process.id())
    }

    /// The number of its process.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// The time that processors have spent on it.
    pub fn processor_time(&self) -> Result<Duration> {
        processor_time::of(self.process.id())
    }
}

impl Drop for Farrier {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Puts nodes into a database.
pub async fn fill(database: &Path, nodes: Nodes) -> Result<()> {
    let store = SqliteStore::open(database).await?;
    let now = OffsetDateTime::now_utc();
    let session = AgentSession {
        agent_secret_token: Some(TOKEN.to_owned()),
        agent_url: Some(CALLBACK_URL.to_owned()),
        ..AgentSession::default()
    };
    for number in 0..nodes.count {
        let new = NewNode {
            name: Some(format!("n{number}")),
            driver: "fake-hardware".to_owned(),
            ports: vec![address(number).parse()?],
            ..NewNode::default()
        };
        let mut node = Node::enrol(new, now);
        node.uuid = identity(number).parse()?;
        // Held alike: whoever waits is looked after, and none of these has a machine.
        node.provision_state = nodes.state;
        store.create(&node).await?;
        let terms = Terms { holder: "bench", now, expires_at: now };
        let (lease, _) = store.take(node.uuid, &terms).await?;
        let change =
            Change { session: SessionChange::Replace(&session), ends_lease: true, ..Change::of(&node) };
        store.write(&lease, &change).await?;
    }
    Ok(())
}

/// Ironic with all of its services in one process.
pub struct Rival {
    ironic: Ironic,
    /// Port of its API.
    pub port: u16,
}

impl Rival {
    /// Starts it, and fills its database with these nodes.
    pub fn start(workspace: &Workspace, folder: &Path, nodes: Nodes) -> Result<Self> {
        let environment = ironic_environment::cached_version(workspace, RIVAL)?;
        let ironic = Ironic::start(&environment, folder, folder, "http://127.0.0.1:9", Cleaning::Metadata)?;
        let script = folder.join("nodes.py");
        fs::write(&script, include_str!("ironic_nodes.py"))?;
        let python: PathBuf = environment.join("bin/python");
        let mut fill = command(python);
        fill.arg(&script).arg(folder.join("ironic.conf")).arg(nodes.count.to_string());
        fill.arg(nodes.state.as_str()).args([TOKEN, CALLBACK_URL]);
        run_quietly(&mut fill)?;
        Ok(Self { port: ironic.port(), ironic })
    }

    /// The most memory that it ever had, in KiB.
    pub fn peak_kib(&self) -> Result<u64> {
        peak_kib(self.ironic.process_id())
    }

    /// The number of its process.
    pub fn process_id(&self) -> u32 {
        self.ironic.process_id()
    }
}

/// The most memory that a process and its children ever had, each for itself, in KiB.
pub fn peak_kib(process: u32) -> Result<u64> {
    let mut sum = peak_alone_kib(process)?;
    for entry in fs::read_dir("/proc")? {
        let Some(other) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process that ended meanwhile is nobody's child.
        let status = fs::read_to_string(format!("/proc/{other}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
        if parent == Some(process) {
            sum += peak_kib(other)?;
        }
    }
    Ok(sum)
}

fn peak_alone_kib(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    peak.context("the kernel does not say how much memory a process has")?.trim().parse().context("no number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_identities_and_addresses_of_their_own() {
        assert_eq!(identity(0), "00000000-0000-0000-0000-000000000001");
        assert_eq!(address(0), "52:54:00:00:00:00");
        assert_eq!(address(0x0102), "52:54:00:00:01:02");
    }

    #[test]
    fn the_memory_of_a_process_is_known() {
        assert!(peak_kib(std::process::id()).unwrap() > 100);
    }
}
