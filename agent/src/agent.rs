//! The state of an agent process and the course of its life (section 3.1).

use crate::api::{routes, server};
use crate::conductor::client::ConductorClient;
use crate::conductor::heartbeat::{self, Callback};
use crate::conductor::lookup;
use crate::conductor::token::{self, Verdict};
use crate::options::{Options, TlsVersion};
use crate::session::Session;
use crate::tls::Identity;
use crate::{advertise, deployment, extensions, http, network};
use farrier_hardware::dispatch::HardwareManagers;
use farrier_hardware::generic::GenericHardwareManager;
use farrier_hardware::manager::StepHost;
use farrier_imaging::progress::ProgressHandle;
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::lookup::{LookupConfig, LookupReply, Node};
use serde_json::{Map, Value, json};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};
use tokio::runtime::Handle;
use tokio::sync::Notify;

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
    session: Mutex<Session>,
    node: Mutex<Option<Node>>,
    partition_uuids: Mutex<Map<String, Value>>,
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
    /// No node.
    #[error(transparent)]
    Lookup(#[from] lookup::LookupError),
    /// The token went to somebody else.
    #[error(
        "the agent token of this boot was handed out before: another machine looked up first, or a \
         reply was lost; power-cycle the machine through its conductor"
    )]
    TokenLost,
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
    /// An agent that knows its settings and nothing else.
    ///
    /// # Errors
    ///
    /// [`AgentError::Http`].
    pub fn new(options: Options, session_path: &Path, runtime: Handle) -> Result<Arc<Self>, AgentError> {
        let http = http::client(&options)?;
        let mut session = Session::open(session_path);
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
            session: Mutex::new(session),
            node: Mutex::default(),
            partition_uuids: Mutex::default(),
        }))
    }

    /// Finds the node, then serves commands and sends heartbeats until something breaks.
    ///
    /// # Errors
    ///
    /// Whatever keeps the agent from being commanded; the caller logs it and starts again.
    pub async fn run(self: Arc<Self>) -> Result<(), AgentError> {
        let client = self.conductor.as_ref().ok_or(AgentError::NoApiUrl)?;
        let addresses = network::wait_for_hardware_addresses().await?;
        network::wait_for_address().await?;
        tracing::info!(mac_addresses = addresses.join(","), "asking the conductor which node this is");
        let reply = lookup::lookup(client, &self.options, &addresses).await?;
        tracing::info!(node = %reply.node.uuid, "this machine is known to the conductor");
        self.accept_token(&reply.config)?;
        let host = advertise::host(&self.options, client).await?;
        let identity = self.identity(&host)?;
        let tls = identity.server_config(minimum_tls(&self.options, &reply.config))?;
        let listener = server::listen(&self.options)?;
        let callback = self.callback(&reply, &host, &identity);
        self.cache_node(reply.node);
        tracing::info!(callback_url = callback.url, "listening");
        let heartbeats = tokio::spawn(heartbeat::run(Arc::clone(&self), callback));
        let router = routes::router(Arc::clone(&self), extensions::find);
        let served = server::serve(listener, tls, router).await;
        heartbeats.abort();
        served.map_err(AgentError::Serve)
    }

    /// The token shared with the conductor, once it is known.
    pub fn token(&self) -> Option<String> {
        lock(&self.session).token.clone()
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

    fn accept_token(&self, config: &LookupConfig) -> Result<(), AgentError> {
        let mut session = lock(&self.session);
        match token::judge(session.token.is_some(), config.agent_token.as_deref()) {
            Verdict::Use(token) => {
                session.token = Some(token);
                session.store();
                Ok(())
            }
            Verdict::Keep => Ok(()),
            Verdict::Lost => Err(AgentError::TokenLost),
        }
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
        let identity = Identity::generate(&name, host.address, skew)?;
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
}

/// The lookup's setting takes precedence (S15).
fn minimum_tls(options: &Options, config: &LookupConfig) -> TlsVersion {
    let from_lookup = config.tls_min_version.as_deref().and_then(TlsVersion::from_text);
    from_lookup.unwrap_or(options.tls_min_version)
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
}
