//! A client of Ironic's node API.

use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::Value;
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

/// The version of the API: no part of a life needs a later one.
const VERSION: &str = "1.89";
/// Longest time for a request.
const LIMIT: Duration = Duration::from_secs(30);
/// For how long a connection is kept that nobody uses: shorter than servers keep it.
const IDLE_LIMIT: Duration = Duration::from_secs(5);
/// For how long a node that is locked, or a conductor that is busy, or does not answer, is asked again.
const LOCKED_LIMIT: Duration = Duration::from_secs(120);
/// Pause before that.
const LOCKED_PAUSE: Duration = Duration::from_secs(1);
/// Most requests at a time.
const MOST_REQUESTS: usize = 32;
/// Most characters of an answer in an error.
const MOST_TEXT: usize = 500;

/// Who asks.
#[derive(Debug, Clone, Default)]
pub enum Credentials {
    /// Nobody.
    #[default]
    None,
    /// Who has a token (`X-Auth-Token`).
    Token(String),
    /// A user with a password.
    Basic(String, String),
}

/// Where a node API is, and who asks there.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Its URL.
    pub url: String,
    /// Who asks.
    pub credentials: Credentials,
}

/// The node API of the conductors of a site: where one is not reached, the next one is asked.
#[derive(Debug)]
pub struct NodeApi {
    client: Client,
    endpoints: Vec<Endpoint>,
    /// How often another one was taken.
    turn: AtomicUsize,
    /// Turns of requests: conductors take so many connections of one client, and no more.
    turns: Semaphore,
}

/// A request that was not granted.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// No client can be made.
    #[error("no client can be made: {0}; see whether this build has TLS")]
    Client(#[source] reqwest::Error),
    /// There is nobody to ask.
    #[error("no conductor is named; give a URL or a site file")]
    NoEndpoint,
    /// The conductor is not reached.
    #[error("{request}: {}; see whether the conductor is at this URL", chain(source))]
    Unreachable {
        /// What was asked.
        request: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// The conductor refuses.
    #[error("{request} is answered with {status}: {text}")]
    Refused {
        /// What was asked.
        request: String,
        /// With which status.
        status: StatusCode,
        /// And which text.
        text: String,
    },
}

impl NodeApi {
    /// The API below URLs, whose certificates are not verified.
    ///
    /// # Errors
    ///
    /// [`ApiError::Client`], [`ApiError::NoEndpoint`].
    pub fn new(endpoints: Vec<Endpoint>) -> Result<Self, ApiError> {
        if endpoints.is_empty() {
            return Err(ApiError::NoEndpoint);
        }
        // It fails where one was chosen before, which is as good.
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = Client::builder()
            .tls_danger_accept_invalid_certs(true)
            .no_proxy()
            .timeout(LIMIT)
            .pool_idle_timeout(IDLE_LIMIT)
            .build();
        let client = client.map_err(ApiError::Client)?;
        Ok(Self { client, endpoints, turn: AtomicUsize::new(0), turns: Semaphore::new(MOST_REQUESTS) })
    }

    /// Asks, and asks again while a node is locked or no worker is free. Gives null where the answer has no JSON.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ApiError> {
        let start = Instant::now();
        loop {
            match self.ask_once(method.clone(), path, body).await {
                Err(ApiError::Refused { status, .. })
                    if is_for_now(status) && start.elapsed() < LOCKED_LIMIT =>
                {
                    sleep(LOCKED_PAUSE).await;
                }
                // A conductor that closes a connection, or starts again, is asked again what may come twice.
                Err(ApiError::Unreachable { .. })
                    if is_repeatable(&method, path) && start.elapsed() < LOCKED_LIMIT =>
                {
                    sleep(LOCKED_PAUSE).await;
                }
                answer => return answer,
            }
        }
    }

    /// Asks once.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn ask_once(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ApiError> {
        let request = format!("{method} {path}");
        // It is never closed.
        let _turn = self.turns.acquire().await.ok();
        let turn = self.turn.load(Ordering::Relaxed);
        let asked = self.request(turn, method, path, body).send().await;
        let read = async |reply: reqwest::Response| Ok((reply.status(), reply.text().await?));
        let answer = match asked {
            Ok(reply) => read(reply).await,
            Err(error) => Err(error),
        };
        let (status, text) = match answer {
            Ok(answer) => answer,
            Err(source) => {
                // Of all that are asked at this time, one takes the next conductor.
                self.turn.compare_exchange(turn, turn + 1, Ordering::Relaxed, Ordering::Relaxed).ok();
                return Err(ApiError::Unreachable { request, source });
            }
        };
        match status.is_success() {
            true => Ok(serde_json::from_str(&text).unwrap_or_default()),
            false => {
                let text = text.chars().take(MOST_TEXT).collect();
                Err(ApiError::Refused { request, status, text })
            }
        }
    }

    fn request(&self, turn: usize, method: Method, path: &str, body: Option<&Value>) -> RequestBuilder {
        let Endpoint { url, credentials } = &self.endpoints[turn % self.endpoints.len()];
        let request = self.client.request(method, format!("{}{path}", url.trim_end_matches('/')));
        let request = request.header("X-OpenStack-Ironic-API-Version", VERSION);
        let request = match credentials {
            Credentials::None => request,
            Credentials::Token(token) => request.header("X-Auth-Token", token),
            Credentials::Basic(user, password) => request.basic_auth(user, Some(password)),
        };
        match body {
            Some(body) => request.json(body),
            None => request,
        }
    }
}

/// An error with what it comes from.
fn chain(error: &reqwest::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// Whether a request may come twice: what it asks for is so then, and nothing else.
fn is_repeatable(method: &Method, path: &str) -> bool {
    matches!(*method, Method::GET | Method::PATCH | Method::DELETE) || path.ends_with("/maintenance")
}

/// Whether a refusal means: later.
fn is_for_now(status: StatusCode) -> bool {
    matches!(status, StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS)
}
