//! Routes, tokens and error bodies (sections 1.2 to 1.5).

use super::body;
use super::description;
use super::limits::Limits;
use super::server::Visit;
use super::texts::Texts;
use crate::agent::Agent;
use crate::commands::{CommandEngine, Find, Refusal};
use crate::conductor::token;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, OriginalUri, Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, Version, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use axum::{Json, Router};
use farrier_protocol::error_code;
use farrier_protocol::progress::Progress;
use futures_util::FutureExt;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Once};
use std::time::UNIX_EPOCH;

/// Said once, because strangers ask as often as they like.
static HINT: Once = Once::new();
const WITHOUT_TOKEN: &str = "a client requests the results of commands without a token; if the client is an Ironic \
    older than \
                             23.0.5, 24.1.4, 26.1.2 or 29.0.0, boot with farrier-list-without-token=1";

/// What the handlers share.
#[derive(Clone)]
pub struct Api {
    agent: Arc<Agent>,
    engine: Arc<CommandEngine>,
    limits: Limits,
}

/// Query of the command routes; of a name that comes twice the first counts.
type CommandQuery = Query<Vec<(String, String)>>;

fn parameter<'a>(query: &'a CommandQuery, name: &str) -> Option<&'a str> {
    query.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
}

fn wait(query: &CommandQuery) -> bool {
    parameter(query, "wait").is_some_and(|text| text.eq_ignore_ascii_case("true"))
}

/// The whole interface over the commands that `find_command` finds. Every route exists with and
/// without `/v1`.
pub fn router(agent: Arc<Agent>, find_command: Find) -> Router {
    router_within(Limits::default(), agent, find_command)
}

/// [`router`] with other bounds for clients.
pub(super) fn router_within(limits: Limits, agent: Arc<Agent>, find_command: Find) -> Router {
    let engine = CommandEngine::new(Arc::clone(&agent), find_command);
    let api = Api { agent, engine, limits };
    let resources: Router<Api> = Router::new()
        .route("/status", only(get(status)))
        .route("/progress", only(get(progress)))
        .route("/commands", only(get(redirect).post(redirect)))
        .route("/commands/", only(get(list).post(submit)))
        .route("/commands/{id}", only(get(show)));
    Router::new()
        .route("/", only(get(root)))
        .route("/v1", only(get(redirect)))
        .route("/v1/", only(get(version)))
        .nest("/v1", resources.clone())
        .merge(resources)
        .fallback(unknown_path)
        .layer(middleware::from_fn_with_state(api.clone(), answer_and_log))
        .with_state(api)
}

/// Another method on a known path answers a fault like every other error.
fn only(route: MethodRouter<Api>) -> MethodRouter<Api> {
    route.fallback(async || fault(405, "405 Method Not Allowed: see the API description at /"))
}

async fn unknown_path(OriginalUri(uri): OriginalUri) -> Response {
    fault(404, &format!("404 Not Found: there is no {}", uri.path()))
}

async fn root(Extension(visit): Extension<Visit>, headers: HeaderMap) -> Json<Value> {
    Json(description::root(&base(&visit, &headers)))
}

async fn version(Extension(visit): Extension<Visit>, headers: HeaderMap) -> Json<Value> {
    Json(description::version(&base(&visit, &headers)))
}

async fn status(State(api): State<Api>) -> Json<Value> {
    let started_at = api.agent.started_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    Json(json!({"started_at": started_at, "version": crate::agent::VERSION}))
}

async fn progress(State(api): State<Api>) -> Json<Progress> {
    Json(api.agent.progress.snapshot())
}

/// The form with the slash is the real one; the query goes along.
async fn redirect(OriginalUri(uri): OriginalUri) -> Response {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let location = format!("{}/{query}", uri.path());
    (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, location)]).into_response()
}

async fn list(State(api): State<Api>, query: CommandQuery) -> Result<Texts, Refused> {
    let texts = match api.authorize(&query) {
        Ok(()) => api.engine.list(),
        Err(_) if api.agent.options.list_without_token => api.engine.list_without_arguments(),
        Err(refusal) => {
            if parameter(&query, "agent_token").is_none() {
                HINT.call_once(|| tracing::warn!("{WITHOUT_TOKEN}"));
            }
            return Err(refusal.into());
        }
    };
    Ok(Texts::list("commands", texts))
}

async fn show(
    State(api): State<Api>,
    Extension(visit): Extension<Visit>,
    id: Result<Path<String>, PathRejection>,
    query: CommandQuery,
) -> Result<Texts, Refused> {
    api.authorize(&query)?;
    let reception = visit.seat.receive();
    reception.complete();
    // What is not text is nobody's id.
    let id = id.map(|Path(id)| id).unwrap_or_default();
    Ok(Texts::from(api.engine.get(&id, wait(&query)).await?))
}

async fn submit(
    State(api): State<Api>,
    Extension(visit): Extension<Visit>,
    query: CommandQuery,
    request: Request,
) -> Result<Texts, Refused> {
    // Strangers get no memory of this machine.
    api.authorize(&query)?;
    let reception = visit.seat.receive();
    let command = body::receive(request.into_body(), &reception, &api.limits).await?;
    Ok(Texts::from(api.engine.submit(command, reception.hand_over(), wait(&query)).await?))
}

impl Api {
    /// Reading results needs the token as much as running commands does (S01).
    fn authorize(&self, query: &CommandQuery) -> Result<(), Refusal> {
        if token::matches(self.agent.token().as_deref(), parameter(query, "agent_token")) {
            return Ok(());
        }
        Err(Refusal::new(401, "401 Unauthorized: Token invalid."))
    }

    /// Whether a request may be followed by another one on its connection: it shows the token, and got what it
    /// asked for. Strangers cannot make answers wait for each other.
    fn may_go_on(&self, uri: &Uri, status: StatusCode) -> bool {
        status.is_success()
            && CommandQuery::try_from_uri(uri).is_ok_and(|query| self.authorize(&query).is_ok())
    }
}

/// A refusal as a reply.
struct Refused(Refusal);

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        reply(&self.0)
    }
}

fn fault(status: u16, text: &str) -> Response {
    reply(&Refusal::new(status, text))
}

/// The body is the contract's; the code of the error is in a header beside it.
fn reply(refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(error_code::HEADER, refusal.code.to_string())], Json(refusal.fault())).into_response()
}

/// URL under which the client called.
fn base(visit: &Visit, headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    format!("{}://{host}", visit.scheme)
}

/// A request of HTTP/1.1 names one host (RFC 9112, 3.2).
fn names_one_host(request: &Request) -> bool {
    match request.headers().get_all(header::HOST).iter().count() {
        0 => request.version() < Version::HTTP_11,
        count => count == 1,
    }
}

/// A defect costs one reply, and every request one line. The query is left out of it, because it
/// carries the token.
async fn answer_and_log(State(api): State<Api>, request: Request, next: Next) -> Response<Body> {
    let started = std::time::Instant::now();
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let source = source(&request);
    let mut response = if names_one_host(&request) {
        let response = AssertUnwindSafe(next.run(request)).catch_unwind().await;
        response.unwrap_or_else(|_| {
            fault(500, "500 Internal Server Error: a defect of the agent; report it with the agent's log")
        })
    } else {
        fault(400, "400 Bad Request: the header Host must come once")
    };
    if !api.may_go_on(&uri, response.status()) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let (status, milliseconds) = (response.status().as_u16(), started.elapsed().as_millis());
    tracing::debug!(?source, %method, path = uri.path(), status, milliseconds, "request");
    response
}

/// Who asks: the first address a proxy names, else the peer (section 1.8).
fn source(request: &Request) -> Option<IpAddr> {
    let named = |name: &str| -> Option<IpAddr> {
        let value = request.headers().get(name)?.to_str().ok()?;
        value.split(',').next()?.trim().parse().ok()
    };
    let peer = || request.extensions().get::<Visit>().map(|visit| visit.peer.ip());
    named("x-forwarded-for").or_else(|| named("x-real-ip")).or_else(peer)
}
