//! The one HTTP client of the agent (S17): API, images and callbacks.

use crate::options::Options;
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
/// [`HttpError`] when the TLS settings cannot be used.
pub fn client(options: &Options) -> Result<reqwest::Client, HttpError> {
    // A ramdisk has no certificate store; without an explicit list the client cannot be built.
    let builder = reqwest::Client::builder()
        .tls_certs_only([])
        .tls_danger_accept_invalid_certs(options.insecure)
        .user_agent(concat!("farrier-agent/", env!("CARGO_PKG_VERSION")))
        .pool_max_idle_per_host(2)
        .connect_timeout(options.image_download_connection_timeout.duration());
    Ok(builder.build()?)
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
