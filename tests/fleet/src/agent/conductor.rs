//! What an agent asks a conductor: to look up its node, to take its inventory, and to hear it.
//!
//! Pauses before a conductor is asked again are those of the real world: it has a clock of its own.

use super::answer_times::AnswerTimes;
use super::inventory;
use super::medium::Parameters;
use crate::journal::Side;
use crate::machine::Machine;
use farrier_protocol::heartbeat::{ApiVersion, Heartbeat, VERSION_HEADER};
use farrier_protocol::lookup::{LookupReply, MASKED, MIN_TOKEN_LENGTH};
use reqwest::{Client, StatusCode};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time for a request (contract, 2.1).
const LIMIT: Duration = Duration::from_secs(30);
/// Longest pause between two lookups (2.3).
const MOST_PAUSE: Duration = Duration::from_secs(60);
/// How long a node is looked up (2.3).
const LOOKUP_LIMIT: Duration = Duration::from_secs(600);
/// Pauses between attempts to post an inventory (10.2).
const POST_PAUSES: [u64; 4] = [5, 5, 6, 12];

/// The conductor, as one agent reaches it.
#[derive(Debug)]
pub struct Conductor {
    client: Client,
    api_url: Option<String>,
    answer_times: Arc<AnswerTimes>,
}

/// What a lookup has found.
#[derive(Debug, Clone)]
pub struct Found {
    /// Identity of the node.
    pub node: String,
    /// The token of this boot.
    pub token: String,
    /// The longest pause between two heartbeats.
    pub heartbeat_timeout: Duration,
}

impl Conductor {
    /// The conductor that kernel parameters name, asked from the address of a machine.
    ///
    /// # Errors
    ///
    /// No client can be made.
    pub fn new(
        parameters: &Parameters,
        machine: &Machine,
        answer_times: &Arc<AnswerTimes>,
    ) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .local_address(IpAddr::V4(machine.identity.address))
            .tls_danger_accept_invalid_certs(true)
            .no_proxy()
            .pool_max_idle_per_host(1)
            .timeout(LIMIT)
            .build()?;
        Ok(Self { client, api_url: parameters.api_url.clone(), answer_times: Arc::clone(answer_times) })
    }

    /// Posts the inventory of a machine until it is taken or refused.
    pub async fn post_inventory(&self, url: &str, machine: &Machine) {
        let report = inventory::report(machine);
        let mut pauses = POST_PAUSES.iter();
        loop {
            let status = self.client.post(url).json(&report).send().await.map(|reply| reply.status());
            let (again, outcome) = match status {
                Ok(status) => {
                    (status.is_server_error() || status == StatusCode::CONFLICT, status.as_str().to_owned())
                }
                Err(error) => (true, error.to_string()),
            };
            machine.note(Side::Machine, None, "post inventory", outcome);
            match pauses.next().filter(|_| again) {
                Some(pause) => {
                    tokio::time::sleep(Duration::from_secs(*pause)).await;
                }
                None => return,
            }
        }
    }

    /// Looks up the node of a machine; nothing where nobody tells of a conductor, none is found, or the token is unknown.
    pub async fn look_up(&self, machine: &Machine, token: Option<String>) -> Option<Found> {
        let api_url = self.api_url.as_deref()?;
        let url = format!("{api_url}/v1/lookup?addresses={}", machine.identity.mac());
        let start = tokio::time::Instant::now();
        let mut pause = Duration::from_secs(1);
        while start.elapsed() < LOOKUP_LIMIT {
            let asked = self.client.get(&url).header(VERSION_HEADER, ApiVersion::AGENT_TOKEN.to_string());
            match asked.send().await {
                Ok(reply) if reply.status() == StatusCode::OK => {
                    if let Ok(reply) = reply.json::<LookupReply>().await {
                        machine.note(Side::Machine, None, "look up", reply.node.uuid.clone());
                        return found(reply, token);
                    }
                }
                Ok(reply) => tracing::debug!("{url}: {}", reply.status()),
                Err(error) => tracing::debug!("{url}: {error}"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MOST_PAUSE);
        }
        machine.note(Side::Machine, None, "look up", "found nothing");
        None
    }

    /// Sends a heartbeat, and tells whether it was taken.
    pub async fn heartbeat(&self, node: &str, heartbeat: &Heartbeat) -> bool {
        let Some(api_url) = self.api_url.as_deref() else { return false };
        let asked = self.client.post(format!("{api_url}/v1/heartbeat/{node}"));
        let asked = asked.header(VERSION_HEADER, ApiVersion::AGENT_VERIFY_CA.to_string()).json(heartbeat);
        let start = Instant::now();
        let answer = asked.send().await;
        if answer.is_ok() {
            self.answer_times.note(start.elapsed());
        }
        match answer {
            Ok(reply) if reply.status() == StatusCode::ACCEPTED => true,
            Ok(reply) => {
                tracing::warn!("heartbeat of {node}: {}", reply.status());
                false
            }
            Err(error) => {
                tracing::debug!("heartbeat of {node}: {error}");
                false
            }
        }
    }
}

/// What a reply says. A token that was handed out already is told by its mask.
fn found(reply: LookupReply, own: Option<String>) -> Option<Found> {
    let told = reply.config.agent_token.filter(|token| token != MASKED && token.len() >= MIN_TOKEN_LENGTH);
    let token = told.or(own)?;
    let heartbeat_timeout = Duration::from_secs(reply.config.heartbeat_timeout);
    Some(Found { node: reply.node.uuid, token, heartbeat_timeout })
}
