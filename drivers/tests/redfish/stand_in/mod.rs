//! A BMC that speaks Redfish, as a real one would, with the manners of those that are odd or broken. What it was asked,
//! and what its machine did, can be looked at.

mod event_log;
mod faults;
mod machine;
mod mockup;
mod resources;
pub mod rules;
mod screen;
mod sessions;
mod virtual_media;

pub use machine::Machine;
pub use mockup::Mockup;

use crate::wrong_answers::http::Spoiler;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use farrier_drivers::redfish::quirks::Quirk;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// User and password that it knows.
pub const USER: &str = "stable-hand";
pub const PASSWORD: &str = "oats+hay=horse";

/// The path of its machine.
pub const SYSTEM: &str = "/redfish/v1/Systems/1";

/// In what it differs from a BMC that does all as the schema has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Manner {
    /// In a way that the table of quirks knows. What is refused or fails for a while does so once or twice.
    Odd(Quirk),
    /// Insertions are accepted, and nothing is inserted.
    ForgetsInsertions,
    /// The drive that is first takes nothing.
    FirstDriveIsBroken,
    /// Both of its drives take CDs and sticks.
    DrivesTakeAll,
    /// It has one drive, which takes CDs and sticks.
    OneDrive,
    /// Its drives tell of the last image when they are empty.
    KeepsImage,
    /// It has no sessions.
    NoSessions,
    /// It takes no password but for a session.
    NoBasic,
    /// It answers those alone that take packed answers.
    WantsPacking,
    /// Its versions are empty, and refused when they are sent.
    EmptyEtags,
    /// It knows a session for three requests.
    ForgetfulSessions,
    /// A session that it does not know lacks rights.
    ExpiredIsForbidden,
    /// It takes the first power action and does not carry it out.
    ForgetsFirstReset,
    /// It takes the first insertion and the first ejection, and does not carry them out.
    ForgetsFirstChangeOfMedia,
    /// It restarts when it gets the first power action: that is lost, and three connections after it.
    RestartsAtReset,
    /// It answers nothing.
    Hangs,
    /// It is out of service.
    OutOfService,
    /// It is out of service three times.
    OutOfServiceAtFirst,
    /// It sends to another host.
    RedirectsAway,
    /// It sends to another path of its own.
    RedirectsHome,
    /// It sends to where it was asked.
    RedirectsInCircles,
    /// The machine is 10 MiB long.
    Long,
    /// The machine is cut off.
    CutOff,
    /// Actions are tasks that end after a while.
    Tasks,
    /// Actions are tasks that never end.
    EndlessTasks,
    /// Actions are tasks that fail.
    FailingTasks,
    /// Errors repeat the password.
    RepeatsPassword,
    /// The machine does not tell its power.
    SilentPower,
    /// There are two machines.
    TwoMachines,
    /// Its log begins with the newest entry.
    NewestFirst,
    /// Its log has the paths of its entries alone.
    EntriesByPath,
    /// Its clock is an hour ahead.
    FastClock,
    /// Its firmware boots by HTTP from a URL that it is told.
    BootsByHttp,
}

/// A request that it got.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub body: Value,
    pub at: Instant,
}

/// What it is and does.
#[derive(Debug)]
pub struct Inner {
    pub manners: BTreeSet<Manner>,
    pub machine: Machine,
    pub seen: Vec<Seen>,
    sessions: sessions::Sessions,
    faults: faults::Faults,
    /// Which answers are other ones than they should be, by what is asked.
    pub rules: Vec<rules::Rule>,
    pub drives: virtual_media::Drives,
    tasks: u32,
    /// What is in its log, and how long ago it was written, in seconds.
    pub log: Vec<(i64, String)>,
    /// The replies that it has, where these are not its own.
    pub mockup: Option<Mockup>,
}

/// The BMC. Dropping it takes it away.
pub struct StandIn {
    pub url: String,
    /// Which answers are wrong, by their number.
    pub spoiler: Spoiler,
    inner: Arc<Mutex<Inner>>,
    serving: JoinHandle<()>,
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl StandIn {
    /// One with these manners.
    pub async fn start(manners: impl IntoIterator<Item = Manner>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (inner, spoiler, app) = Self::app(manners);
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, spoiler, inner, serving }
    }

    /// One with the replies of another.
    pub async fn of(mockup: Mockup) -> Self {
        let bmc = Self::start([]).await;
        bmc.inner().mockup = Some(mockup);
        bmc
    }

    /// One that listens by TLS with this certificate and key, as PEM texts.
    pub async fn start_tls(certificate: &str, key: &str) -> Self {
        use axum_server::tls_rustls::RustlsConfig;
        let config = RustlsConfig::from_pem(certificate.into(), key.into()).await.unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let (inner, spoiler, app) = Self::app([]);
        let server = axum_server::from_tcp_rustls(listener, config).unwrap();
        let serving = tokio::spawn(async move { server.serve(app.into_make_service()).await.unwrap() });
        Self { url, spoiler, inner, serving }
    }

    /// Many of them, each at an address of its own, behind one socket: a process may have few.
    pub async fn start_many(
        manners: impl IntoIterator<Item = Option<Manner>>,
    ) -> (Vec<Self>, JoinHandle<()>) {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (mut all, mut by_host) = (Vec::new(), HashMap::new());
        for (number, manner) in manners.into_iter().enumerate() {
            let host = format!("127.0.{}.{}:{port}", number / 250 + 1, number % 250 + 1);
            let (inner, spoiler, _) = Self::app(manner);
            by_host.insert(host.clone(), Arc::clone(&inner));
            let (url, serving) = (format!("http://{host}"), tokio::spawn(async {}));
            all.push(Self { url, spoiler, inner, serving });
        }
        let app = Router::new().fallback(answer_at).with_state(Arc::new(by_host));
        (all, tokio::spawn(async move { axum::serve(listener, app).await.unwrap() }))
    }

    fn app(manners: impl IntoIterator<Item = Manner>) -> (Arc<Mutex<Inner>>, Spoiler, Router) {
        let manners: BTreeSet<_> = manners.into_iter().collect();
        let machine = Machine::new(&manners);
        let (seen, sessions, faults, drives, log, mockup, rules) = Default::default();
        let inner = Inner { manners, machine, seen, sessions, faults, drives, tasks: 0, log, mockup, rules };
        let inner = Arc::new(Mutex::new(inner));
        let spoiler = Spoiler::new(|status| refusal(status, "Base.1.0.GeneralError", "wrong once"));
        let app = spoiler.before(Router::new().fallback(answer).with_state(Arc::clone(&inner)));
        (inner, spoiler, app)
    }

    /// What it is and does now.
    pub fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// What it was asked, as `POST /path`.
    pub fn asked(&self) -> Vec<String> {
        self.inner().seen.iter().map(|seen| format!("{} {}", seen.method, seen.path)).collect()
    }

    /// The bodies of what it was asked by a method.
    pub fn bodies(&self, method: &Method) -> Vec<Value> {
        let inner = self.inner();
        inner.seen.iter().filter(|seen| seen.method == method).map(|seen| seen.body.clone()).collect()
    }

    /// How often it was asked something.
    pub fn count(&self, what: &str) -> usize {
        self.asked().iter().filter(|asked| *asked == what).count()
    }
}

async fn answer_at(
    State(by_host): State<Arc<HashMap<String, Arc<Mutex<Inner>>>>>,
    request: Request,
) -> Response {
    let host = request.headers()["host"].to_str().unwrap();
    let inner = Arc::clone(&by_host[host]);
    answer(State(inner), request).await
}

async fn answer(State(inner): State<Arc<Mutex<Inner>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, 1 << 20).await.unwrap_or_default();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let path = parts.uri.path().to_owned();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let (method, headers, at) = (parts.method, parts.headers, Instant::now());
    let seen = Seen { method, path, query, headers, body, at };
    let answer = {
        let mut inner = inner.lock().unwrap();
        inner.seen.push(seen.clone());
        inner.by_rule(&seen).or_else(|| inner.answer(&seen))
    };
    match answer {
        Some(answer) => answer,
        None => std::future::pending().await,
    }
}

impl Inner {
    pub fn has(&self, manner: Manner) -> bool {
        self.manners.contains(&manner)
    }

    fn is_odd(&self, quirk: Quirk) -> bool {
        self.has(Manner::Odd(quirk))
    }

    /// The answer; nothing where there never is one.
    fn answer(&mut self, seen: &Seen) -> Option<Response> {
        if self.has(Manner::Hangs) {
            return None;
        }
        if let Some(fault) = self.fault(seen) {
            return Some(fault);
        }
        if let Some(answer) = self.session(seen) {
            return Some(answer);
        }
        if let Some(mockup) = &mut self.mockup {
            return Some(mockup.answer(seen));
        }
        let answer = self.event_log(seen).or_else(|| self.virtual_media(seen));
        Some(answer.unwrap_or_else(|| self.resource(seen)))
    }
}

/// An answer with JSON.
fn json_answer(status: StatusCode, body: &Value) -> Response {
    (status, [("content-type", "application/json")], Body::from(body.to_string())).into_response()
}

/// A refusal with a message.
fn refusal(status: StatusCode, identifier: &str, message: &str) -> Response {
    let detail = json!({"MessageId": identifier, "Message": message});
    let body = json!({"error": {"code": identifier, "message": message, "@Message.ExtendedInfo": [detail]}});
    json_answer(status, &body)
}
