//! The one HTTP client of the agent (S17): API, images and callbacks.

use crate::options::Options;
use crate::tls;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};

/// The client cannot be built.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client cannot be set up: {source}")]
pub struct HttpError {
    #[from]
    source: reqwest::Error,
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
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
