//! The one HTTP client of the agent (S17): API, images and callbacks.

use crate::identity::tls;
use crate::settings::options::Options;
use farrier_protocol::json::{self, JsonError, Limits};
use reqwest::Response;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use rustls::CertificateError;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::io;

/// Most bytes of a node's record, which may have a config drive among its `instance_info`, and of the answer to a step.
pub const MOST_RECORD: usize = 4 << 20;
/// Most bytes of any other answer: versions, acknowledgements, and the text of a refusal.
pub const MOST_ANSWER: usize = 64 << 10;

/// What the values of an answer may be. The text is in memory beside them, and the machine may have 256 MiB of it.
const LIMITS: Limits = Limits::USUAL.as_deep_as(64).within(8 << 20);

/// The client cannot be built.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client cannot be set up: {source}")]
pub struct HttpError {
    #[from]
    source: reqwest::Error,
}

/// There is no answer, or none that can be read.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// No answer, a broken connection, or an error status.
    #[error("{}: {}", reason(.0), advice(.0))]
    Broken(#[source] reqwest::Error),
    /// No server sends that much.
    #[error("the answer has more than {} KiB", .0 >> 10)]
    TooLong(usize),
}

impl From<reqwest::Error> for AnswerError {
    /// Without the URL, which may have a password; the caller names it.
    fn from(error: reqwest::Error) -> Self {
        Self::Broken(error.without_url())
    }
}

/// Makes TLS usable in this process; call it once, before anything else uses TLS.
pub fn install_tls_provider() {
    rustls::crypto::ring::default_provider().install_default().ok();
}

/// Builds the client.
///
/// # Errors
///
/// [`HttpError`] when the settings contradict each other.
pub fn client(options: &Options) -> Result<reqwest::Client, HttpError> {
    Ok(builder(options).build()?)
}

/// A client with these settings, to which the proxies of one image may be added.
pub fn builder(options: &Options) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls::client::config(options))
        .user_agent(concat!("farrier-agent/", env!("CARGO_PKG_VERSION")))
        .pool_max_idle_per_host(2)
        .connect_timeout(options.image_download_connection_timeout.duration())
}

/// The body of an answer, which has at most so many bytes.
///
/// # Errors
///
/// [`AnswerError`].
pub async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, AnswerError> {
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await? {
        if body.len() + part.len() > most {
            return Err(AnswerError::TooLong(most));
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}

/// The beginning of an answer's body, [`MOST_ANSWER`] bytes at most: the status of the answer decides, whatever comes of
/// its text.
pub async fn beginning(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < MOST_ANSWER
        && let Ok(Some(part)) = response.chunk().await
    {
        body.extend_from_slice(&part[..part.len().min(MOST_ANSWER - body.len())]);
    }
    body
}

/// The JSON of an answer, whose values are limited.
///
/// # Errors
///
/// [`JsonError`].
pub fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, JsonError> {
    json::read(body, &LIMITS)
}

/// Headers of every request to the conductor's API (section 2.1).
pub fn api_headers(options: &Options) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let json = HeaderValue::from_static("application/json");
    headers.insert(CONTENT_TYPE, json.clone());
    headers.insert(ACCEPT, json);
    let request_id = options.global_request_id.as_deref();
    if let Some(id) = request_id.and_then(|id| HeaderValue::from_str(id).ok()) {
        headers.insert("X-OpenStack-Request-ID", id);
    }
    headers
}

/// The innermost cause, which names what really happened.
pub fn reason(error: &reqwest::Error) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

/// What to do about a request without an answer.
pub fn advice(error: &reqwest::Error) -> &'static str {
    match causes(error).find_map(|cause| cause.downcast_ref()) {
        Some(fault) => tls_advice(fault),
        None => "check network, DNS and that the server runs",
    }
}

/// What to do about a handshake that failed.
pub fn tls_advice(fault: &rustls::Error) -> &'static str {
    match fault {
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }
            | CertificateError::Expired
            | CertificateError::ExpiredContext { .. },
        ) => "the certificate ran out, or a clock is wrong: renew it, or set ipa-ntp-server",
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "its certificate is for another name: use a URL with that name, or change the certificate",
        rustls::Error::InvalidCertificate(_) => {
            "its certificate is of no known authority: give cafile, or ipa-insecure=1 without protection"
        }
        rustls::Error::InvalidMessage(_) => {
            "the server there does not speak TLS: use http://, or correct the port"
        }
        _ => "compare TLS versions, cipher suites and client certificates of both sides",
    }
}

/// An error and what caused it, the innermost one last.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(Some(error as &(dyn Error + 'static)), |cause| {
        // An I/O error does not name what it wraps as its source.
        match (*cause).downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => (*cause).source(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::routing::get;

    #[tokio::test]
    async fn an_answer_without_end_is_not_waited_for() {
        install_tls_provider();
        let routes = Router::new()
            .route("/fits", get(|| async { vec![b' '; MOST_RECORD] }))
            .route("/long", get(|| async { vec![b' '; MOST_RECORD + 1] }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap();
        tokio::spawn(axum::serve(listener, routes).into_future());
        let client = client(&Options::default()).unwrap();
        let ask = async |path| client.get(format!("http://{host}/{path}")).send().await.unwrap();
        assert_eq!(body(ask("fits").await, MOST_RECORD).await.unwrap().len(), MOST_RECORD);
        assert!(matches!(body(ask("long").await, MOST_RECORD).await, Err(AnswerError::TooLong(_))));
        assert!(matches!(body(ask("fits").await, MOST_ANSWER).await, Err(AnswerError::TooLong(_))));
        assert_eq!(beginning(ask("long").await).await.len(), MOST_ANSWER);
    }
}
