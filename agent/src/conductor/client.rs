//! Requests to the conductor's API (sections 2.1 and 2.2).

use super::error::ApiError;
use crate::network::http;
use crate::settings::options::Options;
use crate::settings::revisable::Revisable;
use farrier_protocol::heartbeat::{ApiVersion, Heartbeat, VERSION_HEADER};
use farrier_protocol::lookup::LookupReply;
use reqwest::header::HeaderMap;
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use uuid::Uuid;

/// A client of the API under one or more URLs.
pub struct ConductorClient {
    http: Revisable<reqwest::Client>,
    headers: HeaderMap,
    timeout: Duration,
    /// The URL that answered last comes first.
    urls: Mutex<Vec<String>>,
    /// Whether one has answered.
    has_answered: AtomicBool,
    /// From the configuration, or detected once.
    version: Mutex<Option<ApiVersion>>,
}

impl ConductorClient {
    /// A client, or nothing when no API URL is configured.
    pub fn new(options: &Options, http: reqwest::Client) -> Option<Self> {
        let urls = options.api_url.0.clone();
        let version = options.ironic_api_version.as_deref().and_then(|text| {
            text.parse().inspect_err(|error| tracing::warn!(%error, "detecting the API version instead")).ok()
        });
        (!urls.is_empty()).then(|| Self {
            http: Revisable::new(http),
            headers: http::api_headers(options),
            timeout: options.http_request_timeout.duration(),
            urls: Mutex::new(urls),
            has_answered: AtomicBool::new(false),
            version: Mutex::new(version),
        })
    }

    /// Sends requests with another client from now on.
    pub fn use_client(&self, http: reqwest::Client) {
        self.http.revise(http);
    }

    /// The API URLs, the one that answered last first.
    pub fn urls(&self) -> Vec<String> {
        self.urls.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// The API URL that answered last; nothing before one has answered.
    pub fn answering_url(&self) -> Option<String> {
        self.urls().into_iter().next().filter(|_| self.has_answered.load(Ordering::Relaxed))
    }

    /// Asks which node owns one of these addresses (section 2.3). Without the server's version it does
    /// not ask while the server may still tell it: a reply to the fallback version has no token.
    ///
    /// # Errors
    ///
    /// [`ApiError`]; 404 is the normal answer while the node is in a state without an agent.
    pub async fn lookup(&self, addresses: &[String], node: Option<Uuid>) -> Result<LookupReply, ApiError> {
        let version = match self.version().await {
            Err(error) if error.is_passing() => return Err(error),
            version => or_fallback(version).min(ApiVersion::AGENT_TOKEN),
        };
        self.lookup_as(version, addresses, node).await
    }

    /// As [`ConductorClient::lookup`], without consequences: at this version no token is handed out,
    /// which happens once per boot.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn look(&self, addresses: &[String]) -> Result<LookupReply, ApiError> {
        self.lookup_as(ApiVersion::FALLBACK, addresses, None).await
    }

    async fn lookup_as(
        &self,
        version: ApiVersion,
        addresses: &[String],
        node: Option<Uuid>,
    ) -> Result<LookupReply, ApiError> {
        let mut path = format!("/v1/lookup?addresses={}", addresses.join(","));
        if let Some(uuid) = node {
            path.push_str(&format!("&node_uuid={uuid}"));
        }
        let response = self.send(Method::GET, &path, Some(version), None).await?;
        let (url, body) = read(response, StatusCode::OK, http::MOST_RECORD).await?;
        let read = || {
            let reply: LookupReply = http::json(&body).map_err(|error| error.to_string())?;
            reply.node.uuid.parse::<Uuid>().map_err(|error| format!("node.uuid: {error}"))?;
            Ok(reply)
        };
        read().map_err(|reason| ApiError::Invalid { url, expected: "lookup reply", reason })
    }

    /// Sends a heartbeat (section 2.4). Fields that the server does not know are left out.
    ///
    /// # Errors
    ///
    /// [`ApiError`]; every one is answered by trying again later.
    pub async fn heartbeat(&self, node: &str, mut heartbeat: Heartbeat) -> Result<(), ApiError> {
        let server = self.server_version().await;
        if server < ApiVersion::AGENT_VERSION {
            heartbeat.agent_version = None;
        }
        if server < ApiVersion::AGENT_TOKEN {
            heartbeat.agent_token = None;
        }
        if server < ApiVersion::AGENT_VERIFY_CA {
            heartbeat.agent_verify_ca = None;
        }
        let version = server.min(ApiVersion::AGENT_VERIFY_CA);
        let path = format!("/v1/heartbeat/{node}");
        let response = self.send(Method::POST, &path, Some(version), Some(&heartbeat)).await?;
        read(response, StatusCode::ACCEPTED, http::MOST_ANSWER).await.map(drop)
    }

    /// Whether the server supports a certificate of the agent (section 2.6). One whose
    /// version is not known yet is taken for a current one: plain HTTP must not come from a lost reply.
    pub async fn takes_certificates(&self) -> bool {
        let version = self.server_version().await;
        version >= ApiVersion::AGENT_VERIFY_CA || version == ApiVersion::FALLBACK
    }

    /// Highest version of the server, detected once; the fallback when it is unknown.
    pub async fn server_version(&self) -> ApiVersion {
        or_fallback(self.version().await)
    }

    /// Highest version of the server, detected once.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn version(&self) -> Result<ApiVersion, ApiError> {
        let known = *self.version.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(version) = known {
            return Ok(version);
        }
        let version = self.detect_version().await?;
        *self.version.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(version);
        Ok(version)
    }

    async fn detect_version(&self) -> Result<ApiVersion, ApiError> {
        let response = self.send(Method::GET, "/", None, None).await?;
        let (url, body) = read(response, StatusCode::OK, http::MOST_ANSWER).await?;
        let invalid = |reason: String| ApiError::Invalid { url, expected: "version document", reason };
        let root: Value = match http::json(&body) {
            Ok(root) => root,
            Err(error) => return Err(invalid(error.to_string())),
        };
        match root["default_version"]["version"].as_str().map(str::parse) {
            Some(Ok(version)) => Ok(version),
            Some(Err(error)) => Err(invalid(error.to_string())),
            None => Err(invalid("default_version.version is missing".to_owned())),
        }
    }

    /// Tries the URLs in order; a server that cannot be reached passes the request on, an HTTP
    /// status does not.
    async fn send(
        &self,
        method: Method,
        path: &str,
        version: Option<ApiVersion>,
        body: Option<&Heartbeat>,
    ) -> Result<Response, ApiError> {
        let mut failure = None;
        for base in self.urls() {
            let url = format!("{base}{path}");
            let mut request =
                self.http.request(method.clone(), &url).headers(self.headers.clone()).timeout(self.timeout);
            if let Some(version) = version {
                request = request.header(VERSION_HEADER, version.to_string());
            }
            if let Some(body) = body {
                request = request.json(body);
            }
            match request.send().await {
                Ok(response) => {
                    self.prefer(&base);
                    return Ok(response);
                }
                Err(error) => failure = Some(ApiError::unreachable(url, &error)),
            }
        }
        Err(failure.unwrap_or_else(|| ApiError::Unreachable {
            url: path.to_owned(),
            reason: "no API URL is configured".to_owned(),
            advice: "add ipa-api-url",
        }))
    }

    fn prefer(&self, base: &str) {
        let mut urls = self.urls.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(position) = urls.iter().position(|url| url == base) {
            urls[..=position].rotate_right(1);
        }
        self.has_answered.store(true, Ordering::Relaxed);
    }
}

fn or_fallback(version: Result<ApiVersion, ApiError>) -> ApiVersion {
    version.unwrap_or_else(|error| {
        tracing::warn!(%error, fallback = %ApiVersion::FALLBACK, "the API version is not known yet");
        ApiVersion::FALLBACK
    })
}

/// The body of an answer of the wanted status, which has at most so many bytes.
async fn read(response: Response, wanted: StatusCode, most: usize) -> Result<(String, Vec<u8>), ApiError> {
    let url = response.url().to_string();
    let status = response.status();
    if status != wanted {
        return Err(ApiError::refused(url, status, &http::beginning(response).await));
    }
    let body = http::body(response, most).await.map_err(|error| ApiError::unread(url.clone(), error))?;
    Ok((url, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_that_answered_comes_first() {
        http::install_tls_provider();
        let kernel = [("ipa-api-url".to_owned(), "http://a,http://b,http://c".to_owned())].into();
        let (options, _) = Options::load(&kernel, &Default::default());
        let client = ConductorClient::new(&options, http::client(&options).unwrap()).unwrap();
        client.prefer("http://c");
        assert_eq!(client.urls(), ["http://c", "http://a", "http://b"]);
        client.prefer("http://a");
        assert_eq!(client.urls(), ["http://a", "http://c", "http://b"]);
    }

    /// A server on a port of its own that answers every request with a status and a body.
    async fn server(status: StatusCode, body: &'static str) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = axum::Router::new().fallback(async move || (status, body));
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    #[tokio::test]
    async fn a_dead_server_passes_the_request_on_and_an_http_error_does_not() {
        http::install_tls_provider();
        let version = r#"{"default_version": {"version": "1.95"}}"#;
        let dead = {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            format!("http://{}", listener.local_addr().unwrap())
        };
        let live = server(StatusCode::OK, version).await;
        let failing = server(StatusCode::INTERNAL_SERVER_ERROR, "broken").await;
        for (urls, first, expected) in [
            ([&dead, &live], &live, ApiVersion::v1(95)),
            ([&live, &dead], &live, ApiVersion::v1(95)),
            ([&failing, &live], &failing, ApiVersion::FALLBACK),
            ([&dead, &dead], &dead, ApiVersion::FALLBACK),
        ] {
            let given = format!("{},{}", urls[0], urls[1]);
            let kernel = [("ipa-api-url".to_owned(), given)].into();
            let (options, _) = Options::load(&kernel, &Default::default());
            let client = ConductorClient::new(&options, http::client(&options).unwrap()).unwrap();
            assert_eq!(client.server_version().await, expected, "{urls:?}");
            assert_eq!(client.urls().first(), Some(first), "{urls:?}");
        }
    }
}
