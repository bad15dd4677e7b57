//! What recorded conductors answered (`tests/golden/`), answered to this agent from its start to its first
//! heartbeat: it asks what recorded agents asked, the Python agent among them, and takes what they were told.

use super::*;
use crate::api::form::differences;
use crate::api::recording::{self, Recording, TO_CONDUCTOR};
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use farrier_linux::kernel_line;
use farrier_protocol::heartbeat::VERSION_HEADER;
use farrier_protocol::lookup::MASKED;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// What reads `AGENT-TOKEN` in a recording.
const TOKEN: &str = "q3X7yVt0bUo4mQ8J2nS6eRk1wZ5cLdF9hGpTaNxYvBE";
const INSPECTION: &str = "/v1/continue_inspection";
const HEARTBEAT: &str = "/v1/heartbeat";
/// A refused heartbeat is repeated after at most ten seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Answers what is recorded, in its order, and passes on what it was asked, as an exchange is recorded.
async fn conductor(boot: &[Value]) -> (String, UnboundedReceiver<Value>) {
    let (heard, hearing) = unbounded_channel();
    let answers = boot.iter().rev().map(|exchange| (exchange["status"].clone(), exchange["reply"].clone()));
    let answers = Arc::new(Mutex::new(answers.collect::<Vec<_>>()));
    let router = axum::Router::new().fallback(move |request: Request| {
        let (answers, heard) = (Arc::clone(&answers), heard.clone());
        async move {
            hear(request, &heard).await;
            let (status, reply) = answers.lock().unwrap().pop().unwrap_or((json!(503), Value::Null));
            let status = StatusCode::from_u16(status.as_u64().unwrap() as u16).unwrap();
            let reply = if reply.is_null() { String::new() } else { reply.to_string() };
            (status, reply.replace("AGENT-TOKEN", TOKEN))
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, hearing)
}

async fn hear(request: Request, heard: &UnboundedSender<Value>) {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let header = |name: &str| head.headers.get(name).map(|value| value.to_str().unwrap());
    let exchange = json!({
        "method": head.method.as_str(),
        "path": head.uri.to_string(),
        "version": header(VERSION_HEADER),
        "accept": header("accept"),
        "content_type": header("content-type"),
        "request": serde_json::from_slice::<Value>(&body).unwrap_or_default(),
    });
    heard.send(exchange).ok();
}

/// What is asked up to the first heartbeat that is accepted. This agent asks for the server's version once.
fn beginning(mut boot: Vec<Value>) -> Vec<Value> {
    let is_heard =
        |exchange: &Value| recording::path(exchange).starts_with(HEARTBEAT) && exchange["status"] == 202;
    if let Some(last) = boot.iter().position(is_heard) {
        boot.truncate(last + 1);
    }
    let mut knows_version = false;
    boot.retain(|exchange| recording::path(exchange) != "/" || !std::mem::replace(&mut knows_version, true));
    boot
}

/// The kernel command line with which a conductor boots an agent for that.
fn kernel_parameters(url: &str, boot: &[Value]) -> String {
    let mut line = "ipa-listen-host=127.0.0.1 ipa-listen-port=0 ipa-advertise-host=127.0.0.1 \
                    ipa-inspection-dhcp-wait-timeout=0"
        .to_owned();
    let (inspections, others): (Vec<_>, Vec<_>) =
        boot.iter().partition(|exchange| recording::path(exchange) == INSPECTION);
    if !inspections.is_empty() {
        line.push_str(&format!(" ipa-inspection-callback-url={url}{INSPECTION}"));
    }
    if !others.is_empty() {
        line.push_str(&format!(" ipa-api-url={url}"));
    }
    if others.iter().any(|exchange| exchange["reply"]["config"]["agent_token"] == MASKED) {
        // It came with the virtual medium.
        line.push_str(&format!(" ipa-agent-token={TOKEN}"));
    }
    line
}

async fn replay(name: &'static str, boot: Vec<Value>) {
    let boot = beginning(boot);
    let (url, mut hearing) = conductor(&boot).await;
    let line = kernel_parameters(&url, &boot);
    let (options, _) = Options::load(&kernel_line::parse(&line), &Default::default());
    let root = tempfile::tempdir().unwrap();
    let agent = Agent::new(options, root.path(), Handle::current()).unwrap();
    let life = tokio::spawn(meet_conductor(Arc::clone(&agent)));
    for recorded in &boot {
        let own = timeout(PATIENCE, hearing.recv()).await;
        let own = own.ok().flatten().unwrap_or_else(|| panic!("{name}: {} is not asked", recorded["path"]));
        assert_alike(&own, recorded, &format!("{name}: {} {}", recorded["method"], recorded["path"]));
        assert_as_python_agent(&own);
    }
    for told in boot.iter().filter_map(|exchange| exchange["reply"].get("node")) {
        let node = agent.node().unwrap();
        assert_eq!(
            (&json!(node.uuid), node.root_device()),
            (&told["uuid"], told.pointer("/properties/root_device"))
        );
        assert_eq!(agent.token().as_deref(), Some(TOKEN), "{name}");
    }
    life.abort();
}

/// The same question, about other machines.
fn assert_alike(own: &Value, recorded: &Value, what: &str) {
    for field in ["method", "version"] {
        assert_eq!(own[field], recorded[field], "{field} of {what}");
    }
    let ((path, query), (recorded_path, recorded_query)) = (parts(own), parts(recorded));
    assert_eq!((path, query), (recorded_path, recorded_query), "{what}");
    assert_same_form(&own["request"], &recorded["request"], what);
}

/// The Python agent asks in the same way.
fn assert_as_python_agent(own: &Value) {
    let route = |exchange: &Value| recording::path(exchange).split(['/', '?']).take(3).collect::<String>();
    let alike = recording::python_agent().into_iter().find(|exchange| route(exchange) == route(own));
    let python = alike.unwrap_or_else(|| panic!("the Python agent does not ask {}", own["path"]));
    for field in ["method", "version", "accept", "content_type"] {
        assert_eq!(own[field], python[field], "{field} of {}", own["path"]);
    }
    assert_same_form(&own["request"], &python["request"], &format!("{} of the Python agent", own["path"]));
}

/// What a machine has not is null, and a machine without disks has no root disk.
fn assert_same_form(own: &Value, recorded: &Value, what: &str) {
    let mut found = differences(own, recorded);
    found.retain(|difference| !difference.contains("null") && difference != ".root_disk: missing");
    assert_eq!(found, Vec::<String>::new(), "{what}: {own:#}");
}

/// Path and names of what is asked there. Addresses of cards are looked at.
fn parts(exchange: &Value) -> (String, BTreeSet<String>) {
    let (path, query) = recording::path(exchange).split_once('?').unwrap_or((recording::path(exchange), ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let names = pairs.map(|(name, value)| {
        let addresses = value.replace("%3A", ":");
        let is_address =
            |text: &str| text.len() == 17 && text.split(':').all(|byte| u8::from_str_radix(byte, 16).is_ok());
        assert!(name != "addresses" || addresses.split(',').all(is_address), "{addresses}");
        name.to_owned()
    });
    (path.to_owned(), names.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn x34_recorded_conductors_are_asked_what_recorded_agents_asked() {
    http::install_tls_provider();
    let mut replays = JoinSet::new();
    for recording in Recording::all() {
        for boot in recording.boots(TO_CONDUCTOR).into_iter().filter(|boot| !boot.is_empty()) {
            replays.spawn(replay(recording.name, boot));
        }
    }
    assert!(replays.len() >= 3);
    while let Some(replayed) = replays.join_next().await {
        replayed.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[should_panic(expected = "version of")]
async fn x34_another_question_is_noticed() {
    http::install_tls_provider();
    let mut boot = recording::python_agent();
    boot.iter_mut().for_each(|exchange| exchange["version"] = json!("1.22"));
    replay("another", boot).await;
}
