//! The course of an agent's life (section 3.1).

use crate::advertise::{self, Host};
use crate::agent::Agent;
use crate::api::{routes, server};
use crate::conductor::heartbeat::{self, Callback};
use crate::conductor::lookup;
use crate::lockdown::Stopped;
use crate::options::{Options, SuiteList, TlsVersion};
use crate::{clock, extensions, inspection, network};
use farrier_protocol::lookup::{LookupConfig, LookupReply};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

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
    /// The API ended.
    #[error("the REST interface broke down: {0}")]
    Serve(#[source] std::io::Error),
}

/// Inspects the machine if that is wanted, finds the node, then serves commands and sends
/// heartbeats until it is told to stop or something breaks.
///
/// # Errors
///
/// Whatever keeps the agent from being commanded; the caller logs it and starts again.
pub async fn run(agent: Arc<Agent>) -> Result<(), AgentError> {
    if let Some(stopped) = Stopped::marked(&agent.root) {
        stopped.settle();
        return pending().await;
    }
    if agent.conductor.is_none() && !inspection::is_wanted(&agent.options) {
        return Err(AgentError::NoApiUrl);
    }
    let addresses = network::wait_for_hardware_addresses().await?;
    network::wait_for_address().await?;
    set_clock(&agent.options).await?;
    let inspected = inspection::run(&agent).await;
    let Some(client) = &agent.conductor else { return rest().await };
    tracing::info!(mac_addresses = addresses.join(","), "asking the conductor which node this is");
    let reply = lookup::lookup(client, &agent.options, &addresses, inspected).await?;
    tracing::info!(node = %reply.node.uuid, "this machine is known to the conductor");
    if !agent.accept(&reply.config) {
        // Nobody could command this agent; another lookup would not get the token either.
        return pending().await;
    }
    let host = advertise::host(&agent.options, client).await?;
    let identity = agent.identity(host.address)?;
    let suites = cipher_suites(&agent.options, &reply.config);
    let tls = identity.server_config(minimum_tls(&agent.options, &reply.config), suites.as_ref())?;
    let listener = server::listen(&agent.options)?;
    let callback = callback(agent.options.advertise_port, &reply, host, identity.certificate_pem);
    agent.cache_node(reply.node);
    tracing::info!(callback_url = callback.url, "listening");
    let heartbeats = tokio::spawn(heartbeat::run(Arc::clone(&agent), callback));
    let router = routes::router(Arc::clone(&agent), extensions::find);
    let until_stopped = async {
        agent.until_stopped().await;
        heartbeats.abort();
    };
    let served = server::serve(listener, tls, router, until_stopped).await;
    heartbeats.abort();
    served.map_err(AgentError::Serve)?;
    agent.until_stopped().await.settle();
    pending().await
}

/// Certificates, and what the logs say, depend on the clock (S16).
async fn set_clock(options: &Options) -> Result<(), AgentError> {
    let Some(server) = &options.ntp_server else { return Ok(()) };
    match clock::synchronize(server).await {
        Err(error) if options.fail_if_clock_not_set => return Err(error.into()),
        Err(error) => tracing::warn!("{error}; going on with the clock as it is"),
        Ok(()) => {}
    }
    Ok(())
}

fn callback(port: u16, reply: &LookupReply, host: Host, certificate_pem: String) -> Callback {
    Callback {
        node: reply.node.uuid,
        url: format!("https://{}:{port}", host.url_form()),
        certificate_pem,
        timeout: Duration::from_secs(reply.config.heartbeat_timeout),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
