//! What an agent process knows: settings, session, node, and what it has done.

use crate::commands::allowance::Allowance;
use crate::conductor::client::ConductorClient;
use crate::conductor::token::{self, Verdict};
use crate::device_settle::facts::Awaited;
use crate::device_settle::{self, DeviceWait};
use crate::identity::session::{self, Session};
use crate::identity::tls::{Identity, TlsError};
use crate::network::http;
use crate::settings::options::Options;
use crate::settings::revisable::Revisable;
use crate::status::Status;
use crate::steps::managers;
use farrier_hardware::dispatch::HardwareManagers;
use farrier_hardware::inventory::system::host_name;
use farrier_hardware::inventory::{self, Request};
use farrier_imaging::cancel::CancelHandle;
use farrier_imaging::progress::ProgressHandle;
use farrier_init::lockdown::Stopped;
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::inventory::Inventory;
use farrier_protocol::lookup::{LookupConfig, Node};
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::SystemTime;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};

/// Version of the agent, also in every heartbeat.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What every part of an agent process shares.
pub struct Agent {
    /// Settings.
    pub options: Revisable<Options>,
    /// The one HTTP client.
    pub http: Revisable<reqwest::Client>,
    /// Runtime on which blocking threads run their requests.
    pub runtime: Handle,
    /// The conductor, when one is configured.
    pub conductor: Option<ConductorClient>,
    /// Memory for what conductors send.
    pub allowance: Arc<Allowance>,
    /// Its devices, as far as they were waited for.
    pub devices: DeviceWait,
    /// What a deployment is doing.
    pub progress: ProgressHandle,
    /// What the agent is doing, for the consoles.
    pub status: Status,
    /// Asks for a heartbeat ahead of time.
    pub heartbeat_wanted: Notify,
    /// When this process started.
    pub started_at: SystemTime,
    /// Directory below which the agent's own files lie.
    pub root: PathBuf,
    /// Cancelled when no client waits for results any more.
    pub ending: CancelHandle,
    /// Set once when no client should be served any more.
    stopped: watch::Sender<Option<Stopped>>,
    session: Mutex<Session>,
    node: Mutex<Option<Node>>,
    managers: Revisable<OnceLock<HardwareManagers>>,
    expected_hints: Mutex<Option<Value>>,
    partition_uuids: Mutex<Map<String, Value>>,
    skip_bmc: AtomicBool,
}

impl Agent {
    /// An agent that knows its settings and nothing else. Its own files lie below `root`.
    ///
    /// # Errors
    ///
    /// [`http::HttpError`].
    pub fn new(options: Options, root: &Path, runtime: Handle) -> Result<Arc<Self>, http::HttpError> {
        let http = http::client(&options)?;
        let mut session = Session::open(&root.join(session::PATH));
        session.token = session.token.or_else(|| options.agent_token.clone());
        Ok(Arc::new(Self {
            conductor: ConductorClient::new(&options, http.clone()),
            options: Revisable::new(options),
            http: Revisable::new(http),
            runtime,
            allowance: Allowance::of_machine(),
            devices: DeviceWait::new(root),
            progress: ProgressHandle::default(),
            status: Status::default(),
            heartbeat_wanted: Notify::new(),
            started_at: SystemTime::now(),
            root: root.to_owned(),
            ending: CancelHandle::default(),
            stopped: watch::Sender::default(),
            session: Mutex::new(session),
            node: Mutex::default(),
            managers: Revisable::new(OnceLock::new()),
            expected_hints: Mutex::default(),
            partition_uuids: Mutex::default(),
            skip_bmc: AtomicBool::default(),
        }))
    }

    /// Stops listener and heartbeats once the reply of the running command is sent, for good.
    pub fn stop_serving(&self, how: Stopped) {
        if let Err(error) = how.mark(&self.root) {
            tracing::error!(%error, "a restarted agent will serve again: the marker cannot be written");
        }
        self.stopped.send_replace(Some(how));
    }

    /// Waits until no client should be served any more, and returns the reason.
    pub async fn until_stopped(&self) -> Stopped {
        let mut stopped = self.stopped.subscribe();
        loop {
            if let Some(how) = *stopped.borrow_and_update() {
                return how;
            }
            // The sender lives as long as self.
            stopped.changed().await.ok();
        }
    }

    /// The token shared with the conductor, once it is known.
    pub fn token(&self) -> Option<String> {
        lock(&self.session).token.clone()
    }

    /// Texts that must never leave the machine.
    pub fn secrets(&self) -> Vec<String> {
        self.token().into_iter().chain(self.options.agent_token.clone()).collect()
    }

    /// Waits for the machine's devices, as long as the options say, and returns what is still awaited then.
    /// Blocks.
    pub fn wait_for_devices(&self) -> Vec<Awaited> {
        self.devices.wait(self.options.device_wait_timeout.duration(), &self.status)
    }

    /// The managers that fit this machine. They judge it once, when its devices are there: a manager that missed
    /// its card would never be listed, and another set of versions has cleaning start again. Blocks, but not so
    /// long that a conductor gives up.
    pub fn managers(&self) -> &HardwareManagers {
        self.managers.get_or_init(|| {
            let patience = self.options.device_wait_timeout.duration().min(device_settle::BRIEFLY);
            self.devices.wait(patience, &self.status);
            HardwareManagers::load(managers::all(&self.options, &self.root))
        })
    }

    /// Has these managers instead of those of this machine.
    #[cfg(test)]
    pub fn use_managers(&self, managers: HardwareManagers) {
        assert!(self.managers.set(managers).is_ok(), "the machine is judged already");
    }

    /// The current inventory of the machine (section 9.6), as its managers report it. Waits for devices as
    /// [`Agent::managers`] does.
    pub fn inventory(&self) -> Inventory {
        let managers = self.managers();
        let mut inventory = inventory::collect(Request {
            boot_interface: self.options.bootif.as_deref(),
            skip_bmc: self.skip_bmc.load(Ordering::Relaxed),
            lldp_patience: self.options.collect_lldp.then(|| self.options.lldp_timeout.duration()),
        });
        managers.show(&mut inventory);
        inventory
    }

    /// The node this machine is.
    ///
    /// # Errors
    ///
    /// No lookup succeeded yet.
    pub fn node(&self) -> Result<Node, CommandError> {
        let details = "this machine is not known to a conductor yet: wait for its lookup";
        let unknown = || CommandError::new(ErrorKind::CommandExecutionError, details);
        lock(&self.node).clone().ok_or_else(unknown)
    }

    /// Remembers the newest record of the node, without the config drive that a deployment's has: that can be large,
    /// and comes along wherever it is needed.
    pub fn cache_node(&self, mut node: Node) {
        node.instance_info.remove("configdrive");
        *lock(&self.node) = Some(node);
    }

    /// Whether these root device hints are others than those whose disk was waited for last; they are so no more.
    pub fn expects_anew(&self, hints: &Value) -> bool {
        lock(&self.expected_hints).replace(hints.clone()).as_ref() != Some(hints)
    }

    /// Hints may have been set after the machine started (D26).
    pub fn refresh_node_without_hints(&self) {
        let has_hints = lock(&self.node).as_ref().is_some_and(|node| node.root_device().is_some());
        let (false, Some(client), Ok(node)) = (has_hints, &self.conductor, self.node()) else { return };
        let Ok(uuid) = node.uuid.parse() else { return };
        match self.runtime.block_on(client.lookup(&[], Some(uuid))) {
            Ok(reply) => self.cache_node(reply.node),
            Err(error) => tracing::warn!(%error, "continuing with the previous node record"),
        }
    }

    /// Answer to `standby.get_partition_uuids` (section 5.9).
    pub fn partition_uuids(&self) -> Map<String, Value> {
        lock(&self.partition_uuids).clone()
    }

    /// Remembers the identifiers of the partitions that were made.
    pub fn set_partition_uuids(&self, identifiers: Map<String, Value>) {
        *lock(&self.partition_uuids) = identifiers;
    }

    /// Takes what a lookup said about this agent; false when its token went to another agent
    /// (section 1.7).
    pub fn accept(&self, config: &LookupConfig) -> bool {
        self.revise(self.options.overridden(config));
        self.skip_bmc.store(config.agent_skip_bmc_detect.unwrap_or(false), Ordering::Relaxed);
        let mut session = lock(&self.session);
        match token::judge(session.token.is_some(), config.agent_token.as_deref()) {
            Verdict::Use(token) => {
                session.token = Some(token);
                session.store();
            }
            Verdict::Keep => {}
            Verdict::Lost => {
                tracing::error!(
                    "the agent token of this boot was handed out before: another machine looked up \
                     first, or a reply was lost; power-cycle the machine through its conductor"
                );
                return false;
            }
        }
        true
    }

    /// Every client follows the settings of the lookup from now on (S15), and so do containers.
    fn revise(&self, options: Options) {
        match http::client(&options) {
            Ok(client) => {
                if let Some(conductor) = &self.conductor {
                    conductor.use_client(client.clone());
                }
                self.http.revise(client);
            }
            Err(error) => tracing::error!(%error, "clients keep the TLS settings from before the lookup"),
        }
        if managers::settings(&options) != managers::settings(&self.options) {
            // They are judged anew when they are asked for.
            self.managers.revise(OnceLock::new());
        }
        self.options.revise(options);
    }

    /// The certificate of this boot; nothing before the agent listens.
    pub fn current_identity(&self) -> Option<Identity> {
        lock(&self.session).identity.clone()
    }

    /// The certificate of this boot: an agent that was restarted takes the same one again, because
    /// the conductor refuses another.
    ///
    /// # Errors
    ///
    /// [`TlsError`] when none can be made.
    pub fn identity(&self, address: IpAddr) -> Result<Identity, TlsError> {
        let mut session = lock(&self.session);
        if let Some(identity) = session.identity.clone().filter(|known| known.address == address) {
            return Ok(identity);
        }
        let name = host_name(Path::new("/"));
        let skew = self.options.auto_tls_allowed_clock_skew.duration();
        let identity = Identity::generate(&name, address, skew, self.options.tls_certificate_curve)?;
        session.identity = Some(identity.clone());
        session.store();
        Ok(identity)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_protocol::lookup::MASKED;
    use farrier_protocol::step::Phase;
    use serde_json::json;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    const TOKEN: &str = "q3X7yVt0bUo4mQ8J2nS6eRk1wZ5cLdF9hGpTaNxYvBE";

    fn config(token: &str) -> LookupConfig {
        serde_json::from_value(json!({"heartbeat_timeout": 300, "agent_token": token})).unwrap()
    }

    #[tokio::test]
    async fn a_token_given_away_already_is_taken_from_the_session_or_not_at_all() {
        http::install_tls_provider();
        let root = tempfile::tempdir().unwrap();
        let start = |options| Agent::new(options, root.path(), Handle::current()).unwrap();
        let late = start(Options::default());
        assert!(!late.accept(&config(MASKED)), "somebody else has the token");
        assert_eq!(late.token(), None);
        assert!(start(Options::default()).accept(&config(TOKEN)));
        let restarted = start(Options::default());
        assert!(restarted.accept(&config(MASKED)));
        assert_eq!(restarted.token().as_deref(), Some(TOKEN));
        assert!(restarted.secrets().contains(&TOKEN.to_owned()));
    }

    #[tokio::test]
    async fn x12_steps_are_those_of_the_file_that_the_lookup_names() {
        http::install_tls_provider();
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, mode: u32, text: &str| {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        };
        write("usr/bin/podman", 0o755, "#!/bin/sh\nexit 0\n");
        let step = "{name: flash_nic, image: x, interface: deploy, priority: 1, reboot_requested: no, abortable: no}";
        write("etc/steps.yaml", 0o644, &format!("steps:\n- {step}\n"));
        let agent = Agent::new(Options::default(), root.path(), Handle::current()).unwrap();
        let steps = || {
            let steps = agent.managers().steps(Phase::Clean).unwrap();
            steps["ContainerHardwareManager"].iter().map(|one| one.step.clone()).collect::<Vec<_>>()
        };
        assert!(!steps().contains(&"flash_nic".to_owned()), "{:?}", steps());
        let containers = json!({"container_steps_file": "/etc/steps.yaml"});
        let config = json!({"heartbeat_timeout": 300, "agent_containers": containers});
        assert!(agent.accept(&serde_json::from_value(config).unwrap()));
        assert!(steps().contains(&"flash_nic".to_owned()), "{:?}", steps());
    }

    #[tokio::test]
    async fn f50_stopping_twice_and_before_the_first_heartbeat_is_fine() {
        http::install_tls_provider();
        let root = tempfile::tempdir().unwrap();
        let agent = Agent::new(Options::default(), root.path(), Handle::current()).unwrap();
        agent.stop_serving(Stopped::Rescued);
        agent.stop_serving(Stopped::LockedDown);
        assert_eq!(agent.until_stopped().await, Stopped::LockedDown);
        assert_eq!(Stopped::marked(root.path()), Some(Stopped::LockedDown));
    }
}
