//! Conductors that answer anything but a node.

use super::*;
use crate::network::http;
use axum::Router;
use axum::extract::Query;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use farrier_protocol::heartbeat::{ApiVersion, VERSION_HEADER};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

const NODE: &str = "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11";
const CARD: &str = "52:54:00:00:00:01";

/// A conductor that answers one lookup after the other in this way, then with a node.
async fn conductor(answers: &[(u16, &str)]) -> String {
    let answers: Vec<_> = answers.iter().map(|(status, body)| (*status, (*body).to_owned())).collect();
    let answers = Arc::new(Mutex::new(answers.into_iter()));
    let node = json!({"node": {"uuid": NODE}, "config": {"heartbeat_timeout": 300}}).to_string();
    let lookup = async move || {
        let (status, body) = answers.lock().unwrap().next().unwrap_or((200, node));
        (StatusCode::from_u16(status).unwrap(), body)
    };
    let version = json!({"default_version": {"version": "1.95"}}).to_string();
    serve(Router::new().route("/", get(async || version)).route("/v1/lookup", get(lookup))).await
}

/// The URL under which the router answers.
async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

fn options(url: &str, line: &str) -> Options {
    http::install_tls_provider();
    let line = format!("ipa-api-url={url} {line}");
    Options::load(&farrier_linux::kernel_line::parse(&line), &Default::default()).0
}

/// The outcome, and the pauses in seconds, which nobody waited for.
async fn ask(options: &Options) -> (Result<LookupReply, LookupError>, Vec<f64>) {
    let client = ConductorClient::new(options, http::client(options).unwrap()).unwrap();
    let pauses = Mutex::new(Vec::new());
    let rest = async |pause: Duration, _: &[String]| pauses.lock().unwrap().push(pause.as_secs_f64());
    let outcome =
        lookup_with(&client, options, None, || vec![CARD.to_owned()], |_| std::future::ready(None), rest)
            .await;
    (outcome, pauses.into_inner().unwrap())
}

#[tokio::test]
async fn f35_whatever_a_conductor_answers_is_asked_again() {
    let answers = [
        (401, "who are you"),
        (403, ""),
        (404, r#"{"error_message": {"faultstring": "no node"}}"#),
        (500, "broken"),
        (502, "<html>"),
        (302, ""),
        (200, "garbage"),
        (200, "{}"),
        (200, r#"{"node": {"uuid": "none"}, "config": {}}"#),
        (200, r#"{"node": [1], "config": 7}"#),
        (204, ""),
    ];
    let url = conductor(&answers).await;
    let (outcome, pauses) = ask(&options(&url, "")).await;
    assert_eq!(outcome.unwrap().node.uuid.to_string(), NODE);
    assert_eq!(pauses.len(), answers.len());
    assert!(pauses.iter().all(|pause| (1.0..=60.0).contains(pause)), "{pauses:?}");
}

#[tokio::test]
async fn a_lookup_waits_for_the_version_that_brings_a_token() {
    let roots = Arc::new(Mutex::new(vec![(200, "1.95"), (502, "")]));
    let root = async move || {
        let (status, version) = roots.lock().unwrap().pop().unwrap_or((200, "1.95"));
        let body = json!({"default_version": {"version": version}}).to_string();
        (StatusCode::from_u16(status).unwrap(), body)
    };
    let versions = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&versions);
    let lookup = async move |headers: HeaderMap| {
        asked.lock().unwrap().push(headers[VERSION_HEADER].to_str().unwrap().to_owned());
        json!({"node": {"uuid": NODE}, "config": {"heartbeat_timeout": 300}}).to_string()
    };
    let router = Router::new().route("/", get(root)).route("/v1/lookup", get(lookup));
    let (outcome, pauses) = ask(&options(&serve(router).await, "")).await;
    assert!(outcome.is_ok());
    assert_eq!(pauses.len(), 1, "the failure to tell the version counts as an attempt");
    assert_eq!(*versions.lock().unwrap(), [ApiVersion::AGENT_TOKEN.to_string()]);
}

#[tokio::test]
async fn x10_cards_that_appear_after_the_first_are_asked_for_too() {
    const ENROLLED: &str = "52:54:00:00:00:03";
    let lookup = async |Query(asked): Query<BTreeMap<String, String>>| {
        let is_known = asked["addresses"].split(',').any(|address| address == ENROLLED);
        let body = json!({"node": {"uuid": NODE}, "config": {"heartbeat_timeout": 300}}).to_string();
        if is_known { (StatusCode::OK, body) } else { (StatusCode::NOT_FOUND, String::new()) }
    };
    let version = json!({"default_version": {"version": "1.95"}}).to_string();
    let router = Router::new().route("/", get(async || version)).route("/v1/lookup", get(lookup));
    let options = options(&serve(router).await, "");
    let client = ConductorClient::new(&options, http::client(&options).unwrap()).unwrap();
    let present = Mutex::new(vec![CARD.to_owned()]);
    // One more card after each attempt, as drivers get to them.
    let later = Mutex::new(vec![ENROLLED, "52:54:00:00:00:02"]);
    let rest = async |_: Duration, known: &[String]| {
        assert_eq!(*known, *present.lock().unwrap(), "the rest is over when others than these are there");
        present.lock().unwrap().extend(later.lock().unwrap().pop().map(str::to_owned));
    };
    let cards = || present.lock().unwrap().clone();
    let reply =
        lookup_with(&client, &options, None, cards, |_| std::future::ready(None), rest).await.unwrap();
    assert_eq!(reply.node.uuid.to_string(), NODE);
    assert_eq!(present.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn f34_a_locked_node_is_left_alone_for_longer_and_longer() {
    let url = conductor(&[(409, "locked"); 4]).await;
    let (outcome, pauses) = ask(&options(&url, "")).await;
    assert!(outcome.is_ok());
    // The usual pause comes on top.
    let least: Vec<_> =
        pauses.iter().zip([5.0, 10.0, 30.0, 30.0]).map(|(pause, added)| pause - added).collect();
    assert!(
        least.iter().zip([1.0, 2.0, 4.0, 8.0]).all(|(pause, most)| (1.0..=most).contains(pause)),
        "{pauses:?}"
    );
}

#[tokio::test]
async fn every_failure_says_in_one_line_what_is_wrong_and_what_to_do() {
    let (dead, silent) = (TcpListener::bind("127.0.0.1:0"), TcpListener::bind("127.0.0.1:0"));
    let (dead, silent) = (dead.await.unwrap(), silent.await.unwrap());
    let [nobody, silence] = [&dead, &silent].map(|one| format!("http://{}", one.local_addr().unwrap()));
    drop(dead);
    for (url, wrong, todo) in [
        (conductor(&[(401, "x"); 9]).await, "401 Unauthorized", "without one"),
        (conductor(&[(404, "x"); 9]).await, "404 Not Found", "enrol"),
        (conductor(&[(409, "x"); 9]).await, "409 Conflict", "locked"),
        (conductor(&[(500, "line\nline"); 9]).await, "500 Internal", "the conductor's log"),
        (conductor(&[(200, "garbage"); 9]).await, "not a lookup reply", "proxy"),
        (nobody, "Connection refused", "check network"),
        (silence, "timed out", "check network"),
    ] {
        let (outcome, _) = ask(&options(&url, "ipa-lookup-timeout=0 ipa-http-request-timeout=0.3")).await;
        let text = outcome.unwrap_err().to_string();
        for part in [&url as &str, wrong, todo, "52:54:00:00:00:01"] {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[test]
fn pauses_stay_between_their_bounds() {
    for (attempt, bound) in [(1, 1.0), (2, 2.0), (5, 16.0), (7, 60.0), (1000, 60.0)] {
        for _ in 0..50 {
            let pause = backoff(attempt, Duration::from_secs(1)).as_secs_f64();
            assert!((1.0..=bound).contains(&pause), "attempt {attempt}: {pause}");
        }
    }
    assert_eq!(backoff(1, Duration::from_secs(10)), Duration::from_secs(10));
}
