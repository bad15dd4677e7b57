//! Keystone and Neutron, as their published interfaces have them. What they were asked, and which ports there are, can be
//! looked at.

use crate::ports::{self, Ports};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// User and password that Keystone knows.
pub const USER: &str = "stable-hand";
pub const PASSWORD: &str = "oats+hay=horse";

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is answered with a status, and an error that repeats the token or the password.
    Status(u16),
    /// It is carried out, and answered with a status all the same.
    AfterAll(u16),
    /// It is never answered.
    Hangs,
    /// The answer never ends.
    Endless,
    /// The answer has 10 MiB.
    Long,
    /// It is sent to another host.
    Redirects,
}

#[derive(Debug, Default)]
pub struct Inner {
    pub ports: Ports,
    pub networks: Vec<Value>,
    pub agents: Vec<Value>,
    /// What was asked, as `POST /v2.0/ports`.
    pub seen: Vec<String>,
    /// What goes wrong with the next request that begins so.
    pub faults: Vec<(&'static str, Fault)>,
    /// How long tokens last, in seconds.
    pub token_life: u32,
    tokens: BTreeSet<String>,
    count: u32,
}

impl Inner {
    /// Takes out the fault of a request.
    fn fault(&mut self, line: &str) -> Option<Fault> {
        let at = self.faults.iter().position(|(begin, _)| line.starts_with(begin))?;
        Some(self.faults.remove(at).1)
    }

    /// How often somebody asked for a token.
    pub fn logins(&self) -> usize {
        self.seen.iter().filter(|line| *line == "POST /v3/auth/tokens").count()
    }

    /// Forgets all tokens.
    pub fn forget(&mut self) {
        self.tokens.clear();
    }
}

/// The cloud. Dropping it takes it away.
pub struct StandIn {
    pub url: String,
    inner: Arc<Mutex<Inner>>,
    serving: JoinHandle<()>,
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl StandIn {
    /// One with two networks, `stable` and `meadow`, and `twins`, of which there are two.
    pub async fn start() -> Self {
        Self::behind(|router| router).await
    }

    /// The same behind something that sees all requests and answers.
    pub async fn behind(gate: impl FnOnce(Router) -> Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let network = |name: &str, id: &str, physical: &str| json!({"id": id, "name": name, "provider:physical_network": physical});
        let networks = vec![
            network("stable", "net-1", "rack1"),
            network("meadow", "net-2", "rack2"),
            network("twins", "net-3", "rack1"),
            network("twins", "net-4", "rack1"),
        ];
        let inner = Arc::new(Mutex::new(Inner { networks, token_life: 3600, ..Inner::default() }));
        let app = gate(Router::new().fallback(answer).with_state(Arc::clone(&inner)));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, inner, serving }
    }

    pub fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }
}

async fn answer(State(inner): State<Arc<Mutex<Inner>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let line = format!("{} {}", parts.method, parts.uri.path());
    let fault = {
        let mut inner = inner.lock().unwrap();
        inner.seen.push(line.clone());
        inner.fault(&line)
    };
    let secret = parts.headers.get("x-auth-token").map_or(PASSWORD, |token| token.to_str().unwrap());
    let refusal = |status: u16| {
        let body = json!({"NeutronError": {"type": "Sad", "message": format!("no \n way with {secret}"), "detail": ""}});
        (StatusCode::from_u16(status).unwrap(), body.to_string()).into_response()
    };
    match fault {
        None => answer_well(&inner, &parts.method, &parts.uri, &parts.headers, &body),
        Some(Fault::Status(status)) => refusal(status),
        Some(Fault::AfterAll(status)) => {
            answer_well(&inner, &parts.method, &parts.uri, &parts.headers, &body);
            refusal(status)
        }
        Some(Fault::Hangs) => std::future::pending().await,
        Some(Fault::Endless) => {
            let begin = stream::once(async { Ok::<_, Infallible>(Bytes::from_static(b"{")) });
            Body::from_stream(begin.chain(stream::pending())).into_response()
        }
        Some(Fault::Long) => "x".repeat(10 << 20).into_response(),
        Some(Fault::Redirects) => {
            (StatusCode::TEMPORARY_REDIRECT, [("location", "http://192.0.2.1/")]).into_response()
        }
    }
}

fn answer_well(
    inner: &Mutex<Inner>,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: &[u8],
) -> Response {
    let mut inner = inner.lock().unwrap();
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    if uri.path() == "/v3/auth/tokens" {
        return grant(&mut inner, headers, &body);
    }
    let is_known =
        headers.get("x-auth-token").is_some_and(|token| inner.tokens.contains(token.to_str().unwrap()));
    if !is_known {
        let body = json!({"error": {"code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication."}});
        return (StatusCode::UNAUTHORIZED, body.to_string()).into_response();
    }
    let query: Vec<_> =
        uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('=')).collect();
    let path = uri.path().trim_start_matches("/v2.0/");
    let (status, body) = match (method, path.split_once('/')) {
        (&Method::GET, None) if path == "networks" => (200, listed("networks", &inner.networks, &query)),
        (&Method::GET, None) if path == "agents" => (200, listed("agents", &inner.agents, &query)),
        (&Method::GET, None) if path == "ports" => {
            let all: Vec<_> = inner.ports.all.values().cloned().collect();
            (200, listed("ports", &all, &query))
        }
        (&Method::POST, None) if path == "ports" => inner.ports.create(&body["port"]),
        (method, Some(("ports", id))) => inner.ports.one(method, id, &body["port"]),
        _ => (404, ports::refusal("HTTPNotFound", "The resource could not be found.")),
    };
    (StatusCode::from_u16(status).unwrap(), if body.is_null() { String::new() } else { body.to_string() })
        .into_response()
}

fn listed(what: &str, all: &[Value], query: &[(&str, &str)]) -> Value {
    let is_meant = |one: &&Value| query.iter().all(|(name, value)| one[*name].as_str() == Some(value));
    let found: Vec<_> = all.iter().filter(is_meant).collect();
    json!({what: found})
}

fn grant(inner: &mut Inner, headers: &HeaderMap, body: &Value) -> Response {
    let user = &body["auth"]["identity"]["password"]["user"];
    if user["name"] != USER || user["password"] != PASSWORD {
        let said = format!("{} is wrong", user["password"].as_str().unwrap_or_default());
        let body = json!({"error": {"code": 401, "title": "Unauthorized", "message": said}});
        return (StatusCode::UNAUTHORIZED, body.to_string()).into_response();
    }
    inner.count += 1;
    let token = format!("gAAAAA-{}", inner.count);
    inner.tokens.insert(token.clone());
    let host = headers.get("host").unwrap().to_str().unwrap();
    let at = |seconds: u32| {
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        format!("2026-01-01T{hours:02}:{minutes:02}:{seconds:02}.000000Z")
    };
    let endpoint =
        json!({"interface": "public", "region_id": "r1", "region": "r1", "url": format!("http://{host}")});
    let body = json!({"token": {
        "issued_at": at(0), "expires_at": at(inner.token_life), "methods": ["password"],
        "catalog": [{"type": "identity", "name": "keystone", "endpoints": []},
            {"type": "network", "name": "neutron", "endpoints": [endpoint]}],
    }});
    (StatusCode::CREATED, [("x-subject-token", token)], body.to_string()).into_response()
}
