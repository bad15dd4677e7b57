//! The listener against clients that misbehave, and at its end.

use super::*;
use crate::options::{Curve, TlsVersion};
use crate::tls::Identity;
use axum::routing::get;
use std::time::Instant;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};

/// Waiting longer than this for anything is a failure.
const DEADLINE: Duration = Duration::from_secs(30);

struct Served {
    /// Told when `/slow` was asked for.
    entered: Arc<Notify>,
    /// Lets `/slow` answer.
    released: Arc<Notify>,
    address: SocketAddr,
    client: reqwest::Client,
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<io::Result<()>>,
}

fn start() -> Served {
    crate::http::install_tls_provider();
    let options = Options { listen_port: 0, listen_host: Some("127.0.0.1".to_owned()), ..Options::default() };
    let listener = listen(&options).unwrap();
    let address = listener.local_addr().unwrap();
    let identity = Identity::generate("agent", address.ip(), PATIENCE, Curve::P384).unwrap();
    let authority = reqwest::Certificate::from_pem(identity.certificate_pem.as_bytes()).unwrap();
    let client = reqwest::Client::builder().tls_certs_only([authority]).build().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let (entered, released) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (enter, release) = (Arc::clone(&entered), Arc::clone(&released));
    let slow = async move || {
        enter.notify_one();
        release.notified().await;
        "done"
    };
    let router = Router::new().route("/", get(async || "here")).route("/slow", get(slow));
    let tls = identity.server_config(TlsVersion::V1_3, None).unwrap();
    let ended = tokio::spawn(serve(listener, tls, router, async move { stopped.await.unwrap_or_default() }));
    Served { entered, released, address, client, stop, ended }
}

#[tokio::test]
async fn f49_the_listener_is_where_the_options_say() {
    let served = start();
    assert_eq!(served.address.ip().to_string(), "127.0.0.1");
    let reply = served.client.get(format!("https://{}/", served.address)).send().await.unwrap();
    assert_eq!(reply.text().await.unwrap(), "here");
}

#[tokio::test]
async fn s20_a_stopped_listener_finishes_its_replies_and_refuses_everybody_else() {
    let served = start();
    let url = format!("https://{}/slow", served.address);
    let reply = tokio::spawn(served.client.get(url).send());
    served.entered.notified().await;
    served.stop.send(()).unwrap();
    // The listener is gone before the last reply.
    while TcpStream::connect(served.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    served.released.notify_one();
    assert_eq!(reply.await.unwrap().unwrap().text().await.unwrap(), "done");
    tokio::time::timeout(DEADLINE, served.ended).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_never_speaks_is_dropped() {
    let served = start();
    let started = Instant::now();
    let mut silent = TcpStream::connect(served.address).await.unwrap();
    let read = tokio::time::timeout(DEADLINE, silent.read(&mut [0; 16])).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    assert!(started.elapsed() >= PATIENCE / 2);
}

#[tokio::test]
async fn connections_beyond_the_cap_are_dropped_and_free_places_are_taken_again() {
    let served = start();
    let mut held = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        held.push(TcpStream::connect(served.address).await.unwrap());
    }
    let url = format!("https://{}/", served.address);
    assert!(served.client.get(&url).send().await.is_err());
    drop(held);
    let deadline = Instant::now() + DEADLINE;
    while let Err(error) = served.client.get(&url).send().await {
        assert!(Instant::now() < deadline, "{error}");
        tokio::task::yield_now().await;
    }
}
