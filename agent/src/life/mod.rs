//! The course of an agent's life (section 3.1).

pub mod clock;

use crate::agent::Agent;
use crate::api::{routes, server};
use crate::conductor::client::ConductorClient;
use crate::conductor::heartbeat::{self, Callback};
use crate::conductor::{discovery, lookup};
use crate::identity::advertise::{self, Host};
use crate::identity::tls::{self, listener::Source};
use crate::inspection::{self, Inspection};
use crate::network::{http, vlan, wait};
use crate::settings::options::{Options, Protocol};
use crate::{doctor, extensions, status};
use farrier_init::lockdown::Stopped;
use farrier_init::logging;
use rustls::ServerConfig;
use std::future::pending;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// Ends the life of an agent process; PID 1 starts another one.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// No network.
    #[error(transparent)]
    Network(#[from] wait::NetworkError),
    /// The conductor did not answer.
    #[error(transparent)]
    Discovery(#[from] discovery::DiscoveryError),
    /// No HTTP client.
    #[error(transparent)]
    Http(#[from] http::HttpError),
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
    Tls(#[from] crate::identity::tls::TlsError),
    /// No port.
    #[error(transparent)]
    Listen(#[from] server::ListenError),
    /// The API ended.
    #[error("the REST interface broke down: {0}")]
    Serve(#[source] std::io::Error),
}

/// Lives in the machine whose files lie below `root`, unless an earlier process of this boot stopped
/// for good. Returns when the machine is rescued.
///
/// # Errors
///
/// Whatever keeps the agent from being commanded; the caller logs it and starts again.
pub async fn begin(mut options: Options, root: &Path) -> Result<(), AgentError> {
    if let Some(stopped) = Stopped::marked(root) {
        stopped.settle();
        return pending().await;
    }
    if options.enable_vlan_interfaces.is_some() {
        doctor::beside(&options, wait::wait_for_card()).await?;
        tokio::task::block_in_place(|| vlan::keep(&options));
    }
    if discovery::is_wanted(&options) {
        doctor::beside(&options, wait::wait_for_address()).await?;
        tokio::task::block_in_place(|| discovery::resolve(&mut options))?;
    }
    run(Agent::new(options, root, Handle::current())?).await
}

/// Waits for the requirements of requests, and then starts.
async fn run(agent: Arc<Agent>) -> Result<(), AgentError> {
    if logging::owns_consoles() {
        tokio::spawn(status::show::forever(Arc::clone(&agent)));
    }
    agent.status.say("waiting for the network");
    sleep(agent.options.hardware_initialization_delay.duration()).await;
    doctor::beside(&agent.options, wait::wait_for_card()).await?;
    doctor::beside(&agent.options, wait::wait_for_address()).await?;
    clock::set(&agent.options).await?;
    meet_conductor(agent).await
}

/// Inspects the machine if that is wanted, finds the node, then serves commands and sends
/// heartbeats until it must stop or something breaks.
async fn meet_conductor(agent: Arc<Agent>) -> Result<(), AgentError> {
    agent.status.say("looking at the machine");
    let inspection = Inspection::of(&agent);
    let inspected = inspection.run().await;
    let Some(client) = &agent.conductor else {
        tokio::spawn(inspection.follow_cards());
        return serve_alone(&agent, inspected.is_ok()).await;
    };
    tracing::info!(
        mac_addresses = wait::hardware_addresses().join(","),
        "asking the conductor which node this is"
    );
    agent.status.say("asking the conductor which node this is");
    let meet = |cards| inspection.meet(cards);
    let asked = lookup::lookup(client, &agent.options, inspected.ok().flatten(), meet);
    let reply = doctor::beside(&agent.options, asked).await?;
    tracing::info!(node = %reply.node.uuid, "the conductor has a node for this machine");
    if !agent.accept(&reply.config) {
        // Nobody could command this agent; another lookup would not get the token either.
        return pending().await;
    }
    let host = advertise::host(&agent.options, client).await?;
    let (tls, certificate_pem) = secure(&agent, client, &host).await?;
    let listener = server::listen(&agent.options)?;
    let scheme = if tls.is_some() { Protocol::Https } else { agent.options.advertise_protocol };
    let url = format!("{}://{}:{}", scheme.scheme(), host.url_form(), agent.options.advertise_port);
    let timeout = Duration::from_secs(reply.config.heartbeat_timeout);
    let callback = Callback { node: reply.node.uuid.clone(), url, certificate_pem, timeout };
    agent.cache_node(reply.node);
    tracing::info!(callback_url = callback.url, "listening");
    agent.status.say(status::READY);
    let heartbeats = tokio::spawn(heartbeat::run(Arc::clone(&agent), callback));
    serve(&agent, listener, tls, Some(heartbeats.abort_handle())).await
}

/// Serves commands until the agent is stopped, and its heartbeats with it.
async fn serve(
    agent: &Arc<Agent>,
    listener: TcpListener,
    tls: Option<ServerConfig>,
    heartbeats: Option<AbortHandle>,
) -> Result<(), AgentError> {
    let router = routes::router(Arc::clone(agent), extensions::find);
    let end_heartbeats = move || heartbeats.as_ref().map(AbortHandle::abort);
    let (serving, end_first) = (Arc::clone(agent), end_heartbeats.clone());
    let until_stopped = async move {
        serving.until_stopped().await;
        end_first();
    };
    let served =
        server::serve_apart(listener, tls, router, Arc::clone(&agent.allowance), until_stopped).await;
    end_heartbeats();
    agent.ending.cancel();
    served.map_err(AgentError::Serve)?;
    let stopped = agent.until_stopped().await;
    stopped.settle();
    match stopped {
        Stopped::Rescued => {
            // PID 1 opens the consoles to the machine's user, and looks for the user's config drive: its disk may
            // be one whose driver is still being loaded (F25). The conductor has its answer.
            tokio::task::block_in_place(|| agent.wait_for_devices());
            Ok(())
        }
        Stopped::LockedDown => pending().await,
    }
}

/// Settings of the listener, none for plain HTTP, and the certificate for the conductor.
async fn secure(
    agent: &Agent,
    client: &ConductorClient,
    host: &Host,
) -> Result<(Option<ServerConfig>, Option<String>), AgentError> {
    let options = &agent.options;
    match Source::choose(options, client.takes_certificates().await)? {
        Source::Made => {
            let identity = agent.identity(host.address()?)?;
            Ok((Some(tls::listener::from_identity(&identity, options)?), Some(identity.certificate_pem)))
        }
        Source::Files(certificate, key) => {
            Ok((Some(tls::listener::from_files(certificate, key, options)?), None))
        }
        Source::Absent => {
            tracing::warn!("listening without TLS: every host on this network can read the agent token");
            Ok((None, None))
        }
    }
}

/// Serves without a conductor, where there is neither lookup nor heartbeat (section 2.1): commands need a token,
/// which only ipa-agent-token can set then.
async fn serve_alone(agent: &Arc<Agent>, is_inspected: bool) -> Result<(), AgentError> {
    let options = &agent.options;
    match (inspection::is_wanted(options), is_inspected) {
        (true, true) => {
            tracing::info!("the inspection is over and ipa-api-url is not set: waiting to be powered off");
        }
        (true, false) => {
            tracing::error!("the inspection failed, and the agent does no lookup without ipa-api-url");
        }
        (false, _) => {
            tracing::error!(
                "no conductor is configured: add ipa-api-url=http://… to the kernel command line"
            );
        }
    }
    let tls = match Source::choose(options, false)? {
        Source::Files(certificate, key) => Some(tls::listener::from_files(certificate, key, options)?),
        Source::Made | Source::Absent => None,
    };
    serve(agent, server::listen(options)?, tls, None).await
}

#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;
    use tokio::runtime::Builder;

    /// The threads of this process, with their nice values (proc_pid_stat(5)).
    fn threads() -> Vec<(String, i64)> {
        let stat = |path: &Path| {
            let text = fs::read_to_string(path.join("stat")).ok()?;
            let (name, fields) = text.split_once('(')?.1.rsplit_once(") ")?;
            Some((name.to_owned(), fields.split(' ').nth(16)?.parse().unwrap()))
        };
        fs::read_dir("/proc/self/task").unwrap().filter_map(|task| stat(&task.unwrap().path())).collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn x37_x44_without_an_api_url_the_api_is_served_all_the_same_and_strangers_give_way() {
        http::install_tls_provider();
        let root = tempfile::tempdir().unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let options = Options {
            listen_host: Some("127.0.0.1".to_owned()),
            listen_port: free.port(),
            agent_token: Some("t".repeat(32)),
            ..Options::default()
        };
        let usual = threads()[0].1;
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("commands").enable_all().build();
        let runtime = runtime.unwrap();
        let agent = Agent::new(options, root.path(), runtime.handle().clone()).unwrap();
        let (serving, client) = (Arc::clone(&agent), agent.http.clone());
        let served = tokio::spawn(async move { serve_alone(&serving, true).await });
        let status = async |path: &str| loop {
            assert!(!served.is_finished(), "it serves nothing");
            if let Ok(reply) = client.get(format!("http://{free}{path}")).send().await {
                return reply.status().as_u16();
            }
            sleep(Duration::from_millis(10)).await;
        };
        assert_eq!(status("/v1/status").await, 200);
        assert_eq!(status("/v1/commands/").await, 401);
        let commands = format!("/v1/commands/?agent_token={}", "t".repeat(32));
        assert_eq!(status(&commands).await, 200);
        let command = json!({"name": "standby.get_partition_uuids", "params": {}});
        let ordered = client.post(format!("http://{free}{commands}")).json(&command).send().await.unwrap();
        assert_eq!(ordered.status(), 200);
        assert!(threads().contains(&("listener".to_owned(), 5)), "strangers give way: {:?}", threads());
        // The worker, and the thread that ran the command.
        let commands = threads().into_iter().filter(|(name, _)| name == "commands").map(|(_, nice)| nice);
        assert_eq!(commands.collect::<Vec<_>>(), [usual; 2], "commands do not");
        agent.stop_serving(Stopped::Rescued);
        served.await.unwrap().unwrap();
        runtime.shutdown_background();
    }
}
