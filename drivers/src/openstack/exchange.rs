//! One request, and its answer as a whole: bounded in bytes and time, and never sent to another host, which would get
//! the token.

use super::cloud::Trust;
use super::error::OpenStackError;
use super::settings::OpenStackSettings;
use crate::client::error_chain::chain;
use crate::client::gzip::{self, Broken};
use crate::client::secret::Secret;
use farrier_conductor::untrusted::json as foreign_json;
use farrier_protocol::json::{self, JsonError, Limits};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Method, Response, StatusCode, Url};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest answer that is read, in bytes: a page of a thousand ports has a few hundred thousand.
const MOST_BYTES: usize = 4 << 20;

/// What the values of an answer may be.
const LIMITS: Limits = Limits::USUAL.as_deep_as(64).within(16 << 20);

/// Longest text of a service that is repeated, in characters.
const MOST_CHARACTERS: usize = 500;

/// The header for the token in requests, and in the reply of Keystone.
const X_AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const X_SUBJECT_TOKEN: HeaderName = HeaderName::from_static("x-subject-token");

/// A request.
#[derive(Debug, Clone)]
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) token: Option<&'a Secret>,
    pub(super) body: Option<&'a Value>,
}

impl Ask<'_> {
    /// Method and URL, for logs and errors.
    pub(super) fn line(&self) -> String {
        format!("{} {}", self.method, self.url)
    }
}

/// An answer.
#[derive(Debug)]
pub(super) struct Reply {
    /// Method and URL of what it answers.
    pub(super) request: String,
    pub(super) status: StatusCode,
    headers: HeaderMap,
    /// What it holds; null where that is nothing, or an error that is no JSON.
    pub(super) body: Value,
    /// What it says about a refusal, in one bounded line and without the token.
    pub(super) reason: String,
}

impl Reply {
    /// The token in it.
    pub(super) fn token(&self) -> Option<Secret> {
        self.headers.get(X_SUBJECT_TOKEN)?.to_str().ok().filter(|token| !token.is_empty()).map(Secret::new)
    }

    /// The pause that it asks for.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
    }
}

/// What sends requests.
#[derive(Debug)]
pub(super) struct Http {
    client: Client,
    timeout: Duration,
}

impl Http {
    /// One that takes certificates of this trust.
    ///
    /// # Errors
    ///
    /// [`OpenStackError::CaFile`].
    pub(super) fn new(trust: &Trust, settings: &OpenStackSettings) -> Result<Self, OpenStackError> {
        let headers = HeaderMap::from_iter([
            (ACCEPT, HeaderValue::from_static("application/json")),
            (ACCEPT_ENCODING, HeaderValue::from_static(gzip::ACCEPTED)),
        ]);
        let client = Client::builder()
            .default_headers(headers)
            .redirect(Policy::none())
            .connect_timeout(settings.connect_timeout)
            .no_proxy();
        let (client, file) = match trust {
            Trust::Host => (client, PathBuf::new()),
            Trust::File(file) => (client.tls_certs_only(certificates(file)?), file.clone()),
            Trust::Anybody => (client.tls_danger_accept_invalid_certs(true), PathBuf::new()),
        };
        let built = client.build();
        let client = built.map_err(|error| OpenStackError::CaFile { file, reason: error.to_string() })?;
        Ok(Self { client, timeout: settings.request_timeout })
    }

    /// Sends a request and reads the answer.
    ///
    /// # Errors
    ///
    /// [`OpenStackError::Unreachable`], [`OpenStackError::TooLong`], [`OpenStackError::Nonsense`].
    pub(super) async fn exchange(&self, ask: &Ask<'_>) -> Result<Reply, OpenStackError> {
        match tokio::time::timeout(self.timeout, self.send(ask)).await {
            Ok(reply) => reply,
            Err(_) => Err(unreachable(ask, format!("not within {} s", self.timeout.as_secs_f64()), true)),
        }
    }

    async fn send(&self, ask: &Ask<'_>) -> Result<Reply, OpenStackError> {
        let mut request = self.client.request(ask.method.clone(), ask.url.clone());
        if let Some(token) = ask.token {
            let value = HeaderValue::from_str(token.expose());
            let mut value = value.map_err(|_| nonsense(ask, "a token that is none"))?;
            value.set_sensitive(true);
            request = request.header(X_AUTH_TOKEN, value);
        }
        if let Some(body) = ask.body {
            request = request.json(body);
        }
        let response = request.send().await;
        read(response.map_err(|error| unreachable(ask, chain(&error), !error.is_connect()))?, ask).await
    }
}

async fn read(mut response: Response, ask: &Ask<'_>) -> Result<Reply, OpenStackError> {
    let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
    let too_long = || OpenStackError::TooLong { request: ask.line(), limit: MOST_BYTES };
    if response.content_length().is_some_and(|length| length > MOST_BYTES as u64) {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(ask, chain(&error), true))? {
        if bytes.len() + chunk.len() > MOST_BYTES {
            return Err(too_long());
        }
        bytes.extend_from_slice(&chunk);
    }
    let bytes = gzip::unpack(bytes, MOST_BYTES).map_err(|broken| match broken {
        Broken::TooLong => too_long(),
        Broken::Unusable(error) => nonsense(ask, &format!("what cannot be unpacked ({error})")),
    })?;
    let (bytes, read) = foreign_json::examine(bytes, |bytes| json::read(bytes, &LIMITS)).await;
    let body = match read {
        Ok(body) => body,
        Err(_) if bytes.is_empty() || !status.is_success() => Value::Null,
        Err(JsonError::Unusable(error)) => {
            return Err(nonsense(ask, &format!("what is no JSON ({error})")));
        }
        Err(error) => return Err(nonsense(ask, &format!("JSON that is not read: {error}"))),
    };
    let reason = reason(&body);
    let reason = ask.token.map_or(reason.clone(), |token| token.taken_out_of(&reason));
    Ok(Reply { request: ask.line(), status, headers, body, reason })
}

/// What an answer says about a refusal: Neutron and Keystone each have a form of their own.
fn reason(body: &Value) -> String {
    let texts = [&body["NeutronError"]["message"], &body["error"]["message"], &body["message"]];
    let text = texts.into_iter().chain([&body["NeutronError"]]).find_map(Value::as_str);
    let text = text.unwrap_or("it does not say why").split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().filter(|character| !character.is_control()).take(MOST_CHARACTERS).collect()
}

/// At least one certificate.
fn certificates(file: &Path) -> Result<Vec<Certificate>, OpenStackError> {
    let bad = |reason: String| OpenStackError::CaFile { file: file.to_owned(), reason };
    let text = std::fs::read(file).map_err(|error| bad(error.to_string()))?;
    let found = Certificate::from_pem_bundle(&text).map_err(|error| bad(error.to_string()))?;
    match found.is_empty() {
        true => Err(bad("there is no certificate".to_owned())),
        false => Ok(found),
    }
}

/// An answer that is not what the API has there.
pub(super) fn nonsense(ask: &Ask<'_>, what: &str) -> OpenStackError {
    OpenStackError::Nonsense { request: ask.line(), what: what.to_owned() }
}

fn unreachable(ask: &Ask<'_>, reason: String, is_sent: bool) -> OpenStackError {
    OpenStackError::Unreachable { request: ask.line(), reason, is_sent }
}
