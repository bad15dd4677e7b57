//! The state of an agent process and the course of its life (section 3.1).

use crate::api::{routes, server};
use crate::conductor::client::ConductorClient;
use crate::conductor::heartbeat::{self, Callback};
use crate::conductor::lookup;
use crate::conductor::token::{self, Verdict};
use crate::lockdown::Stopped;
use crate::options::{Options, SuiteList, TlsVersion};
use crate::session::{self, Session};
use crate::tls::Identity;
use crate::{advertise, clock, deployment, extensions, http, inspection, network};
use farrier_hardware::dispatch::HardwareManagers;
use farrier_hardware::generic::GenericHardwareManager;
use farrier_hardware::inventory::{self, Request};
use farrier_hardware::manager::StepHost;
use farrier_imaging::progress::ProgressHandle;
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::inventory::Inventory;
use farrier_protocol::lookup::{LookupConfig, LookupReply, Node};
use serde_json::{Map, Value, json};
use std::future::pending;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// What every part of an agent process shares.
pub struct Agent {
    /// Settings.
    pub options: Options,
    /// The one HTTP client.
    pub http: reqwest::Client,
    /// Runtime on which blocking threads run their requests.
    pub runtime: Handle,
    /// The conductor, when one is configured.
    pub conductor: Option<ConductorClient>,
    /// The managers that fit this machine.
    pub managers: HardwareManagers,
    /// What a deployment is doing.
    pub progress: ProgressHandle,
    /// Asks for a heartbeat ahead of time.
    pub heartbeat_wanted: Notify,
    /// When this process started.
    pub started_at: SystemTime,
    /// Directory below which the agent's own files lie.
    pub root: PathBuf,
    /// Set once when nobody is to be served any more.
    stopped: watch::Sender<Option<Stopped>>,
    session: Mutex<Session>,
    node: Mutex<Option<Node>>,
    partition_uuids: Mutex<Map<String, Value>>,
    skip_bmc: AtomicBool,
}

/// Ends the life of an agent process; PID 1 starts another one.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Nobody to talk to.
    #[error("no conductor is configured: add ipa-api-url=http://… to the kernel command line")]
    NoApiUrl,
    /// No network.
    #[error(transparent)]
    Network(#[from] network::NetworkError),
    /// No time.
    #[error(transparent)]
    Clock(#[from] clock::ClockError),
    /// No node.
    #[error(transparent)]
    Lookup(#[from] lookup::LookupError),
    /// No address to be called under.
    #[error(transparent)]
    Advertise(#[from] advertise::AdvertiseError),
    /// No certificate.
    #[error(transparent)]
    Tls(#[from] crate::tls::TlsError),
    /// No port.
    #[error(transparent)]
    Listen(#[from] server::ListenError),
    /// No HTTP client.
    #[error(transparent)]
    Http(#[from] http::HttpError),
    /// The API ended.
    #[error("the REST interface broke down: {0}")]
    Serve(#[source] std::io::Error),
}

impl Agent {
    /// An agent that knows its settings and nothing else. Its own files lie below `root`.
    ///
    /// # Errors
    ///
    /// [`AgentError::Http`].
    pub fn new(options: Options, root: &Path, runtime: Handle) -> Result<Arc<Self>, AgentError> {
        let http = http::client(&options)?;
        let mut session = Session::open(&root.join(session::PATH));
        session.token = session.token.or_else(|| options.agent_token.clone());
        Ok(Arc::new(Self {
            conductor: ConductorClient::new(&options, http.clone()),
            options,
            http,
            runtime,
            managers: HardwareManagers::load(vec![Box::new(GenericHardwareManager)]),
            progress: ProgressHandle::default(),
            heartbeat_wanted: Notify::new(),
            started_at: SystemTime::now(),
            root: root.to_owned(),
            stopped: watch::Sender::default(),
            session: Mutex::new(session),
            node: Mutex::default(),
            partition_uuids: Mutex::default(),
            skip_bmc: AtomicBool::default(),
        }))
    }

    /// Inspects the machine if that is wanted, finds the node, then serves commands and sends
    /// heartbeats until it is told to stop or something breaks.
    ///
    /// # Errors
    ///
    /// Whatever keeps the agent from being commanded; the caller logs it and starts again.
    pub async fn run(self: Arc<Self>) -> Result<(), AgentError> {
        if let Some(stopped) = Stopped::marked(&self.root) {
            stopped.settle();
            return pending().await;
        }
        if self.conductor.is_none() && !inspection::is_wanted(&self.options) {
            return Err(AgentError::NoApiUrl);
        }
        let addresses = network::wait_for_hardware_addresses().await?;
        network::wait_for_address().await?;
        self.set_clock().await?;
        let inspected = inspection::run(&self).await;
        let Some(client) = &self.conductor else { return rest().await };
        tracing::info!(mac_addresses = addresses.join(","), "asking the conductor which node this is");
        let reply = lookup::lookup(client, &self.options, &addresses, inspected).await?;
        tracing::info!(node = %reply.node.uuid, "this machine is known to the conductor");
        self.skip_bmc.store(reply.config.agent_skip_bmc_detect.unwrap_or(false), Ordering::Relaxed);
        if !self.accept_token(&reply.config) {
            // Nobody could command this agent; another lookup would not get the token either.
            return pending().await;
        }
        let host = advertise::host(&self.options, client).await?;
        let identity = self.identity(&host)?;
        let suites = cipher_suites(&self.options, &reply.config);
        let tls = identity.server_config(minimum_tls(&self.options, &reply.config), suites.as_ref())?;
        let listener = server::listen(&self.options)?;
        let callback = self.callback(&reply, &host, &identity);
        self.cache_node(reply.node);
        tracing::info!(callback_url = callback.url, "listening");
        let heartbeats = tokio::spawn(heartbeat::run(Arc::clone(&self), callback));
        let router = routes::router(Arc::clone(&self), extensions::find);
        let served = server::serve(listener, tls, router, self.until_stopped(&heartbeats)).await;
        heartbeats.abort();
        served.map_err(AgentError::Serve)?;
        if let Some(stopped) = *self.stopped.borrow() {
            stopped.settle();
        }
        pending().await
    }

    /// Certificates, and what the logs say, depend on the clock (S16).
    async fn set_clock(&self) -> Result<(), AgentError> {
        let Some(server) = &self.options.ntp_server else { return Ok(()) };
        match clock::synchronize(server).await {
            Err(error) if self.options.fail_if_clock_not_set => return Err(error.into()),
            Err(error) => tracing::warn!("{error}; going on with the clock as it is"),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Stops listener and heartbeats once the reply of the running command is sent, for good.
    pub fn stop_serving(&self, how: Stopped) {
        if let Err(error) = how.mark(&self.root) {
            tracing::error!(%error, "a restarted agent will serve again: the marker cannot be written");
        }
        self.stopped.send_replace(Some(how));
    }

    async fn until_stopped(&self, heartbeats: &JoinHandle<()>) {
        // The sender lives as long as self.
        self.stopped.subscribe().wait_for(Option::is_some).await.ok();
        heartbeats.abort();
    }

    /// The token shared with the conductor, once it is known.
    pub fn token(&self) -> Option<String> {
        lock(&self.session).token.clone()
    }

    /// Texts that must never leave the machine.
    pub fn secrets(&self) -> Vec<String> {
        self.token().into_iter().chain(self.options.agent_token.clone()).collect()
    }

    /// What the machine is made of, looked up anew (section 9.6).
    pub fn inventory(&self) -> Inventory {
        inventory::collect(Request {
            boot_interface: self.options.bootif.as_deref(),
            skip_bmc: self.skip_bmc.load(Ordering::Relaxed),
        })
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

    /// Remembers the newest record of the node.
    pub fn cache_node(&self, node: Node) {
        *lock(&self.node) = Some(node);
    }

    /// Hints may have been set after the machine started (D26).
    pub fn refresh_node_without_hints(&self) {
        let has_hints = lock(&self.node).as_ref().is_some_and(|node| node.root_device().is_some());
        let (false, Some(client), Ok(node)) = (has_hints, &self.conductor, self.node()) else { return };
        match self.runtime.block_on(client.lookup(&[], Some(node.uuid))) {
            Ok(reply) => self.cache_node(reply.node),
            Err(error) => tracing::warn!(%error, "going on with the node record known so far"),
        }
    }

    /// Answer to `standby.get_partition_uuids` (section 5.9).
    pub fn partition_uuids(&self) -> Map<String, Value> {
        lock(&self.partition_uuids).clone()
    }

    /// Remembers the identifier of the disk that was written.
    pub fn set_root_uuid(&self, identifier: &str) {
        *lock(&self.partition_uuids) = Map::from_iter([("root uuid".to_owned(), json!(identifier))]);
    }

    /// Takes the token of the lookup; false when it went to somebody else (section 1.7).
    fn accept_token(&self, config: &LookupConfig) -> bool {
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

    /// The certificate of this boot: an agent that was restarted takes the same one again, because
    /// the conductor refuses another.
    fn identity(&self, host: &Host) -> Result<Identity, AgentError> {
        let mut session = lock(&self.session);
        if let Some(identity) = session.identity.clone().filter(|known| known.address == host.address) {
            return Ok(identity);
        }
        let name = network::host_name();
        let skew = self.options.auto_tls_allowed_clock_skew.duration();
        let identity = Identity::generate(&name, host.address, skew, self.options.tls_certificate_curve)?;
        session.identity = Some(identity.clone());
        session.store();
        Ok(identity)
    }

    fn callback(&self, reply: &LookupReply, host: &Host, identity: &Identity) -> Callback {
        let port = self.options.advertise_port;
        Callback {
            node: reply.node.uuid,
            url: format!("https://{}:{port}", host.url_form()),
            certificate_pem: identity.certificate_pem.clone(),
            timeout: Duration::from_secs(reply.config.heartbeat_timeout),
        }
    }
}

/// The address under which the conductor calls the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// Address in the certificate and in the callback URL.
    pub address: IpAddr,
}

impl Host {
    /// The address as URLs write it (F33).
    pub fn url_form(self) -> String {
        match self.address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        }
    }
}

impl StepHost for Agent {
    fn prepare_image(&self, image_info: &Value, config_drive: Option<&str>) -> Result<Value, CommandError> {
        let deployed = deployment::deploy(self, image_info, config_drive)?;
        Ok(json!({"result": format!("prepare_image: {}", deployed.text), "report": deployed.report}))
    }

    fn guards_special_filesystems(&self) -> bool {
        self.options.guard_special_filesystems
    }
}

/// There is nobody to be commanded by: the conductor powers the machine off when it has the data.
async fn rest<T>() -> T {
    tracing::info!("the inspection is over and ipa-api-url is not set: waiting to be powered off");
    std::future::pending().await
}

/// The lookup's setting takes precedence (S15).
fn minimum_tls(options: &Options, config: &LookupConfig) -> TlsVersion {
    let from_lookup = config.tls_min_version.as_deref().and_then(TlsVersion::from_text);
    from_lookup.unwrap_or(options.tls_min_version)
}

fn cipher_suites(options: &Options, config: &LookupConfig) -> Option<SuiteList> {
    let from_lookup = config.tls_cipher_suites.as_deref().and_then(SuiteList::from_text);
    from_lookup.or_else(|| options.tls_cipher_suites.clone())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f33_ipv6_hosts_are_bracketed() {
        for (address, expected) in [("192.0.2.1", "192.0.2.1"), ("2001:db8::1", "[2001:db8::1]")] {
            assert_eq!(Host { address: address.parse().unwrap() }.url_form(), expected);
        }
    }

    #[test]
    fn s15_the_tls_settings_of_the_lookup_win() {
        let suite = "ECDHE-RSA-AES128-GCM-SHA256";
        let options = Options { tls_min_version: TlsVersion::V1_2, ..Options::default() };
        for (config, minimum, suites) in [
            (json!({}), TlsVersion::V1_2, None),
            (json!({"tls_min_version": "1.3"}), TlsVersion::V1_3, None),
            (json!({"tls_min_version": "1.1", "tls_cipher_suites": ""}), TlsVersion::V1_2, None),
            (json!({"tls_cipher_suites": suite}), TlsVersion::V1_2, Some(suite)),
            (json!({"tls_cipher_suites": "AES128-SHA"}), TlsVersion::V1_2, None),
        ] {
            let mut given = config.clone();
            given["heartbeat_timeout"] = json!(300);
            let given: LookupConfig = serde_json::from_value(given).unwrap();
            assert_eq!(minimum_tls(&options, &given), minimum, "{config}");
            let found = cipher_suites(&options, &given);
            assert_eq!(found.map(|list| list.0.join(":")).as_deref(), suites, "{config}");
        }
    }
}
