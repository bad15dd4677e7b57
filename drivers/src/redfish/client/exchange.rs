//! One request, and its answer as a whole: bounded in bytes and time, and never sent to another host, which would get the
//! credentials.

use super::error::RedfishError;
use super::message::Refusal;
use crate::client::error_chain::chain;
use crate::client::gzip::{self, Broken};
use crate::client::secret::Secret;
use farrier_conductor::untrusted::json as foreign_json;
use farrier_protocol::json::{self, JsonError, Limits};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, IF_MATCH, LOCATION, RETRY_AFTER};
use reqwest::{Client, Method, Response, StatusCode, Url};
use serde_json::Value;
use std::error::Error;
use std::io;
use std::time::Duration;

/// Longest answer that is read, in bytes: collections of large machines have some hundred thousand.
const MOST_BYTES: usize = 4 << 20;

/// What the values of an answer may be. Some BMCs say the same key twice.
const LIMITS: Limits = Limits { repeated_keys: 64, ..Limits::USUAL.as_deep_as(64).within(8 << 20) };

/// How often an answer may send to another path.
const MOST_REDIRECTS: usize = 3;

/// The token of a session.
const X_AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// A request.
#[derive(Debug, Clone)]
pub(in crate::redfish) struct Ask<'a> {
    pub(in crate::redfish) method: Method,
    pub(in crate::redfish) path: &'a str,
    pub(in crate::redfish) body: Option<&'a Value>,
    /// The version that the resource has to have still.
    pub(in crate::redfish) etag: Option<&'a str>,
    /// What the answer has to hold.
    pub(in crate::redfish) wants: Wants,
}

/// What an answer has to hold that grants something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::redfish) enum Wants {
    /// JSON, or nothing.
    Json,
    /// A resource.
    Resource,
    /// Anything, also a file.
    Bytes,
}

impl<'a> Ask<'a> {
    /// One without a body.
    pub(in crate::redfish) fn new(method: Method, path: &'a str) -> Self {
        Self { method, path, body: None, etag: None, wants: Wants::Json }
    }

    /// Method and path, for logs and errors.
    pub(in crate::redfish) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// What a request proves to be entitled by.
#[derive(Debug, Clone)]
pub(in crate::redfish) enum Proof {
    /// Nothing.
    Nothing,
    /// The token of a session.
    Token(Secret),
    /// User and password, as the header has them.
    Basic(Secret),
}

/// An answer.
#[derive(Debug)]
pub(in crate::redfish) struct Reply {
    pub(in crate::redfish) status: StatusCode,
    headers: HeaderMap,
    /// What it holds; null where that is nothing, a file, or an error that is no JSON.
    pub(in crate::redfish) body: Value,
    /// The file, where one was asked for.
    pub(in crate::redfish) file: Vec<u8>,
}

impl Reply {
    /// A header that is a text.
    pub(in crate::redfish) fn header(&self, name: impl reqwest::header::AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The token of a session that has begun.
    pub(in crate::redfish) fn token(&self) -> Option<Secret> {
        self.header(X_AUTH_TOKEN).map(Secret::new)
    }

    /// The path that it names: BMCs behind a proxy do not know under which host they are reached.
    pub(in crate::redfish) fn location(&self) -> Option<String> {
        let location = self.header(LOCATION)?;
        match Url::parse(location) {
            Ok(url) => Some(url.path().to_owned()),
            Err(_) => Some(location.to_owned()).filter(|path| path.starts_with('/')),
        }
    }

    /// The pause that it asks for.
    pub(in crate::redfish) fn retry_after(&self) -> Option<Duration> {
        self.header(RETRY_AFTER)?.trim().parse().ok().map(Duration::from_secs)
    }

    /// What it refuses, where it does.
    pub(in crate::redfish) fn refusal(&self) -> Option<Refusal> {
        (!self.status.is_success()).then(|| Refusal::read(self.status, &self.body))
    }
}

/// Where requests go to.
#[derive(Debug)]
pub(in crate::redfish) struct Line {
    pub(in crate::redfish) http: Client,
    /// Scheme, host and port.
    pub(in crate::redfish) address: Url,
    /// Longest time for a request and its answer.
    pub(in crate::redfish) timeout: Duration,
}

impl Line {
    /// The BMC, for logs and errors.
    pub(in crate::redfish) fn label(&self) -> String {
        self.address.as_str().trim_end_matches('/').to_owned()
    }

    /// Sends a request and reads the answer.
    ///
    /// # Errors
    ///
    /// [`RedfishError::Unreachable`], [`RedfishError::Redirected`], [`RedfishError::TooLong`],
    /// [`RedfishError::Nonsense`].
    pub(in crate::redfish) async fn exchange(
        &self,
        ask: &Ask<'_>,
        proof: &Proof,
    ) -> Result<Reply, RedfishError> {
        let exchange = tokio::time::timeout(self.timeout, self.follow(ask, proof));
        match exchange.await {
            Ok(reply) => reply,
            Err(_) => {
                let reason = format!("not within {} s", self.timeout.as_secs_f64());
                Err(self.unreachable(ask, reason, true))
            }
        }
    }

    /// Follows what stays at the same host. Only readings are repeated in any case; an order is one twice only
    /// where the answer says that it was none.
    async fn follow(&self, ask: &Ask<'_>, proof: &Proof) -> Result<Reply, RedfishError> {
        let mut url = self.url(ask)?;
        for _ in 0..=MOST_REDIRECTS {
            let response = self.send(&url, ask, proof).await?;
            let follows = match response.status() {
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
                status => status.is_redirection() && ask.method == Method::GET,
            };
            let target = response.headers().get(LOCATION).and_then(|target| target.to_str().ok());
            let Some(target) = target.filter(|_| follows) else { return self.read(response, ask).await };
            match url.join(target) {
                Ok(next) if next.origin() == self.address.origin() => url = next,
                _ => return Err(self.redirected(ask, target)),
            }
        }
        Err(self.redirected(ask, url.path()))
    }

    async fn send(&self, url: &Url, ask: &Ask<'_>, proof: &Proof) -> Result<Response, RedfishError> {
        let mut request = self.http.request(ask.method.clone(), url.clone());
        request = match proof {
            Proof::Nothing => request,
            Proof::Token(token) => request.header(X_AUTH_TOKEN, self.header_value(ask, token)?),
            Proof::Basic(basic) => request.header(AUTHORIZATION, self.header_value(ask, basic)?),
        };
        if let Some(etag) = ask.etag {
            request = request.header(IF_MATCH, etag);
        }
        if let Some(body) = ask.body {
            request = request.json(body);
        }
        request.send().await.map_err(|error| match distrust(&error) {
            Some(reason) => RedfishError::Untrusted { bmc: self.label(), reason },
            None => self.unreachable(ask, chain(&error), !error.is_connect()),
        })
    }

    fn header_value(&self, ask: &Ask<'_>, secret: &Secret) -> Result<HeaderValue, RedfishError> {
        let value = HeaderValue::from_str(secret.expose());
        let mut value = value.map_err(|_| self.nonsense(ask, "a token that is none"))?;
        value.set_sensitive(true);
        Ok(value)
    }

    async fn read(&self, mut response: Response, ask: &Ask<'_>) -> Result<Reply, RedfishError> {
        let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
        let too_long = || RedfishError::TooLong { bmc: self.label(), request: ask.line(), limit: MOST_BYTES };
        if response.content_length().is_some_and(|length| length > MOST_BYTES as u64) {
            return Err(too_long());
        }
        let mut bytes = Vec::new();
        while let Some(chunk) =
            response.chunk().await.map_err(|error| self.unreachable(ask, chain(&error), true))?
        {
            if bytes.len() + chunk.len() > MOST_BYTES {
                return Err(too_long());
            }
            bytes.extend_from_slice(&chunk);
        }
        let bytes = gzip::unpack(bytes, MOST_BYTES).map_err(|broken| match broken {
            Broken::TooLong => too_long(),
            Broken::Unusable(error) => self.nonsense(ask, &format!("what cannot be unpacked ({error})")),
        })?;
        let (bytes, read) = foreign_json::examine(bytes, |bytes| json::read(bytes, &LIMITS)).await;
        let body = match read {
            Ok(body) => body,
            Err(_) if bytes.is_empty() || !status.is_success() || ask.wants == Wants::Bytes => Value::Null,
            Err(JsonError::Unusable(error)) => {
                return Err(self.nonsense(ask, &format!("what is no JSON ({error})")));
            }
            Err(error) => return Err(self.nonsense(ask, &format!("JSON that is not read: {error}"))),
        };
        if ask.wants == Wants::Resource && status.is_success() && !body.is_object() {
            return Err(self.nonsense(ask, "what is no resource"));
        }
        let file = if ask.wants == Wants::Bytes { bytes } else { Vec::new() };
        Ok(Reply { status, headers, body, file })
    }

    /// A path at this host; what could lead to another one is refused.
    fn url(&self, ask: &Ask<'_>) -> Result<Url, RedfishError> {
        let url = self.address.join(ask.path).ok();
        let is_here = |url: &Url| ask.path.starts_with('/') && url.origin() == self.address.origin();
        url.filter(is_here).ok_or_else(|| self.redirected(ask, ask.path))
    }

    pub(in crate::redfish) fn nonsense(&self, ask: &Ask<'_>, what: &str) -> RedfishError {
        RedfishError::Nonsense { bmc: self.label(), request: ask.line(), what: what.to_owned() }
    }

    fn redirected(&self, ask: &Ask<'_>, target: &str) -> RedfishError {
        let target = target.chars().filter(|character| !character.is_control()).take(200).collect();
        RedfishError::Redirected { bmc: self.label(), request: ask.line(), target }
    }

    fn unreachable(&self, ask: &Ask<'_>, reason: String, is_sent: bool) -> RedfishError {
        RedfishError::Unreachable { bmc: self.label(), request: ask.line(), reason, is_sent }
    }
}

/// Why a certificate is not trusted, where that is what went wrong.
fn distrust(error: &reqwest::Error) -> Option<String> {
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(rustls::Error::InvalidCertificate(reason)) = error.downcast_ref() {
            return Some(reason.to_string());
        }
        // An error of the system that holds another one names as its source what is below that.
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = held.map(|held| held as &(dyn Error + 'static)).or(error.source());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn n02_an_answer_is_limited_by_its_values() {
        rustls::crypto::ring::default_provider().install_default().ok();
        let nest = format!("{}0{}", "{\"\":".repeat(22), "}".repeat(22));
        for (body, said) in [
            (format!("[{}]", vec![nest.as_str(); 30_000].join(",")), Some("bytes of memory")),
            (format!("{{{}}}", vec!["\"k\":0"; 100].join(",")), Some("repeated")),
            (format!("{}{}", "[".repeat(100), "]".repeat(100)), Some("levels deep")),
            ("{\"k\":0,\"k\":1}".to_owned(), None),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
            tokio::spawn(async move {
                let (mut connection, _) = listener.accept().await.unwrap();
                assert_ne!(connection.read(&mut [0; 4096]).await.unwrap(), 0);
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                connection.write_all(head.as_bytes()).await.unwrap();
                connection.write_all(body.as_bytes()).await.unwrap();
            });
            let http = Client::builder().tls_certs_only([]).build().unwrap();
            let line = Line { http, address, timeout: Duration::from_secs(60) };
            let read = line.exchange(&Ask::new(Method::GET, "/redfish/v1"), &Proof::Nothing).await;
            match said {
                Some(said) => assert!(read.unwrap_err().to_string().contains(said), "{said}"),
                None => assert_eq!(read.unwrap().body["k"], 1),
            }
        }
    }
}
