//! HTTP, as BMCs and agents serve it.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, USER_AGENT};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// Longest body that is read: config drives have up to 64 MiB, and come in base64.
const MOST_BYTES: usize = 96 << 20;

/// Longest time for the head of a request.
const HEAD_LIMIT: Duration = Duration::from_secs(30);

/// Longest time for the rest of it.
const BODY_LIMIT: Duration = Duration::from_secs(60);

/// An answer.
pub type Answer = Response<Full<Bytes>>;

/// A request that was read as a whole.
#[derive(Debug)]
pub struct Asked {
    /// The other end of the connection.
    pub peer: SocketAddr,
    /// Its method.
    pub method: Method,
    /// Its path.
    pub path: String,
    /// What follows the path.
    pub query: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl Asked {
    /// Its body as JSON; null where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// A header that is a text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// What the program calls itself that asks.
    pub fn program(&self) -> Option<String> {
        self.header(USER_AGENT.as_str()).map(str::to_owned)
    }

    /// A parameter of the query.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

/// An answer with JSON.
pub fn json(status: StatusCode, body: &Value) -> Answer {
    let mut answer = Response::new(Full::from(body.to_string()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
    answer
}

/// Serves a connection until it ends.
pub async fn serve<S, F>(stream: S, peer: SocketAddr, answer: impl Fn(Asked) -> F)
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = Answer>,
{
    let answered = service_fn(|request: Request<Incoming>| async {
        let answer = match read(request, peer).await {
            Some(asked) => answer(asked).await,
            None => json(StatusCode::BAD_REQUEST, &Value::Null),
        };
        Ok::<_, Infallible>(answer)
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), answered).await {
        tracing::debug!("a connection from {peer} was cut: {error}");
    }
}

async fn read(request: Request<Incoming>, peer: SocketAddr) -> Option<Asked> {
    let (parts, body) = request.into_parts();
    let body = tokio::time::timeout(BODY_LIMIT, Limited::new(body, MOST_BYTES).collect()).await;
    let body = body.ok()?.ok()?.to_bytes();
    let (path, query) = (parts.uri.path().to_owned(), parts.uri.query().unwrap_or_default().to_owned());
    Some(Asked { peer, method: parts.method, path, query, headers: parts.headers, body })
}
