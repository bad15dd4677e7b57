//! Clients that mean no good, and those beside them.

use super::*;
use crate::serve::listen::certificate::Files;
use crate::serve::listen::renewal;
use crate::state::CERTIFICATE;
use axum::body::Bytes;
use axum::routing::{get, post};
use reqwest::{Certificate, Client};
use std::fs;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Longest time any test waits for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// Clients are given little.
const LIMITS: Limits = Limits {
    connections: 8,
    requests: 4,
    patience: Duration::from_secs(1),
    head: 16 << 10,
    body_rate: 64 << 10,
    small_body: 64 << 10,
    bodies: 1 << 20,
    grace: Duration::from_secs(5),
};

struct Stage {
    address: SocketAddr,
    http: Client,
    /// A client that keeps no connection.
    alone: Client,
    scheme: &'static str,
    /// Told when the slow answer is under way.
    slow: Arc<Notify>,
    serving: watch::Sender<()>,
    served: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Stage {
    async fn new(limits: Limits, with_tls: bool) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let folder = tempfile::tempdir().unwrap();
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let files = Files::own(&folder.path().join("tls"), address.ip()).unwrap();
        let pem = fs::read(folder.path().join("tls").join(CERTIFICATE)).unwrap();
        let tls = with_tls.then(|| renewal::certificate(files).unwrap().0);
        let slow = Arc::new(Notify::new());
        let begun = Arc::clone(&slow);
        let answer_slowly = async move || {
            begun.notify_one();
            sleep(Duration::from_millis(200)).await;
        };
        let router = Router::new()
            .route("/", get(async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.ip().to_string()))
            .route("/slow", get(answer_slowly))
            .route("/length", post(async |body: Bytes| body.len().to_string()))
            .layer(axum::extract::DefaultBodyLimit::disable());
        let (serving, mut stopped) = watch::channel(());
        let stop = async move { stopped.changed().await.unwrap_or_default() };
        let served = tokio::spawn(serve(socket, tls, router, limits, stop));
        let trusted = Certificate::from_pem(&pem).unwrap();
        let client = || Client::builder().timeout(PATIENCE).tls_certs_only([trusted.clone()]);
        let http = client().build().unwrap();
        let alone = client().pool_max_idle_per_host(0).build().unwrap();
        let scheme = if with_tls { "https" } else { "http" };
        Self { address, http, alone, scheme, slow, serving, served, _folder: folder }
    }

    /// What is answered, sooner or later: on a machine that is slow, an honest client may be too slow as well.
    async fn get(&self) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let sent = self.http.get(format!("{}://{}/", self.scheme, self.address)).send().await;
            match sent {
                Ok(reply) => return reply.text().await.unwrap(),
                Err(error) => assert!(Instant::now() < end, "{error:?}"),
            }
        }
    }

    /// Whether a body is taken. Who does not read it to its end may be cut off before the answer is seen.
    async fn takes(&self, bytes: usize) -> bool {
        let request = self.http.post(format!("{}://{}/length", self.scheme, self.address));
        let sent = request.body(vec![0; bytes]).send().await;
        let status = sent.map(|reply| reply.status().as_u16());
        assert!(status.as_ref().is_err() || status.as_ref().is_ok_and(|status| [200, 503].contains(status)));
        status.is_ok_and(|status| status == 200)
    }

    /// Sends half of a body that nearly fills the memory.
    async fn greedy(&self) -> TcpStream {
        let mut stream = self.connect().await;
        let head = b"POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n";
        // A client that is refused may be cut off.
        if stream.write_all(head).await.is_ok() {
            stream.write_all(&vec![0; 1000 << 10]).await.ok();
        }
        stream
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

/// Says something byte by byte, again and again, until the listener has enough of it. Gives what that answered.
async fn drips(mut stream: TcpStream, head: &str, drop: &str) -> String {
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reading, mut writing) = stream.split();
    let mut answer = Vec::new();
    let dripping = async {
        loop {
            for byte in drop.as_bytes() {
                if writing.write_all(&[*byte]).await.is_err() {
                    return std::future::pending::<()>().await;
                }
                sleep(Duration::from_millis(20)).await;
            }
        }
    };
    tokio::select! {
        read = timeout(PATIENCE, reading.read_to_end(&mut answer)) => drop_error(read.unwrap()),
        () = dripping => {}
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// A connection that was reset was closed too.
fn drop_error(read: io::Result<usize>) {
    read.ok();
}

#[tokio::test]
async fn handlers_know_who_asks_over_tls_and_without() {
    for with_tls in [true, false] {
        assert_eq!(Stage::new(LIMITS, with_tls).await.get().await, "127.0.0.1");
    }
}

#[tokio::test]
async fn who_speaks_http_to_a_tls_port_gets_an_answer_that_says_so() {
    let stage = Stage::new(LIMITS, true).await;
    let reply = stage.http.get(format!("http://{}/", stage.address)).send().await.unwrap();
    assert_eq!(reply.status(), 400);
    let body: serde_json::Value = reply.json().await.unwrap();
    let fault: serde_json::Value = serde_json::from_str(body["error_message"].as_str().unwrap()).unwrap();
    assert!(fault["faultstring"].as_str().unwrap().contains("use https://"));
}

#[tokio::test]
async fn handshakes_and_heads_that_never_end_are_ended() {
    for (with_tls, head, drop) in [
        // A record of TLS whose bytes hardly come.
        (true, "\x16\x03\x01\x02\x00\x01", "\x01"),
        (true, "\x16", "\x03"),
        (false, "", "GET / HTTP/1.1 "),
        (false, "GET / HTTP/1.1\r\n", "A: b\r\n"),
    ] {
        let stage = Stage::new(Limits { patience: Duration::from_millis(300), ..LIMITS }, with_tls).await;
        let mut silent = stage.connect().await;
        let silence = async { timeout(PATIENCE, silent.read(&mut [0])).await.unwrap() };
        let (_, closed) = tokio::join!(drips(stage.connect().await, head, drop), silence);
        assert!(closed.is_err() || closed.is_ok_and(|bytes| bytes == 0));
        assert_eq!(stage.get().await, "127.0.0.1");
    }
}

#[tokio::test]
async fn a_body_of_a_byte_now_and_then_is_refused() {
    let stage = Stage::new(LIMITS, false).await;
    let head = "POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n";
    let answer = drips(stage.connect().await, head, "x").await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}

#[tokio::test]
async fn a_crowd_that_says_nothing_keeps_nobody_out() {
    let patient = Limits { patience: PATIENCE * 4, ..LIMITS };
    for with_tls in [true, false] {
        let stage = Stage::new(patient, with_tls).await;
        let mut crowd = Vec::new();
        for _ in 0..3 * LIMITS.connections {
            crowd.push(stage.connect().await);
        }
        assert_eq!(stage.get().await, "127.0.0.1");
    }
}

/// Neither a client that says nothing nor one that keeps its connection delays the end of a listener.
#[tokio::test]
async fn a_listener_that_stops_waits_for_answers_alone() {
    for with_tls in [true, false] {
        let stage =
            Stage::new(Limits { patience: 4 * PATIENCE, grace: 4 * PATIENCE, ..LIMITS }, with_tls).await;
        let silent = stage.connect().await;
        stage.get().await;
        let url = format!("{}://{}/slow", stage.scheme, stage.address);
        let answer = tokio::spawn(stage.alone.get(&url).send());
        timeout(PATIENCE, stage.slow.notified()).await.unwrap();
        drop(stage.serving);
        timeout(PATIENCE, stage.served).await.unwrap().unwrap();
        assert_eq!(answer.await.unwrap().unwrap().status(), 200);
        drop(silent);
    }
}

/// One address may have many clients behind it: who has no place is told when to come again, and is not cut off.
#[tokio::test]
async fn f36_more_connections_of_one_address_than_there_is_room_for_are_answered() {
    let patient = Limits { patience: PATIENCE, ..LIMITS };
    for with_tls in [true, false] {
        let stage = Stage::new(patient, with_tls).await;
        let url = format!("{}://{}/slow", stage.scheme, stage.address);
        // Each on a connection of its own: what is sent on one that has just been closed has to be sent again.
        let asked = (0..4 * LIMITS.connections).map(|_| stage.alone.get(&url).send());
        let asked: Vec<_> = asked.map(tokio::spawn).collect();
        let mut counts = [0, 0];
        for reply in asked {
            let reply = reply.await.unwrap().unwrap();
            let is_refused = reply.status() == 503;
            assert!(is_refused || reply.status() == 200, "{}", reply.status());
            assert_eq!(reply.headers().contains_key("retry-after"), is_refused);
            counts[usize::from(is_refused)] += 1;
        }
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}, TLS: {with_tls}");
    }
}

#[tokio::test]
async fn bodies_have_a_memory_in_common_and_small_ones_always_fit() {
    let patient = Limits { patience: PATIENCE * 4, ..LIMITS };
    let stage = Stage::new(patient, false).await;
    assert!(stage.takes(1 << 20).await && !stage.takes(2 << 20).await);
    // Somebody takes nearly all of it, and does not go on.
    let mut greedy = stage.greedy().await;
    let end = Instant::now() + PATIENCE;
    while stage.takes(300 << 10).await {
        assert!(Instant::now() < end);
        // It was refused, as what an answered request had was not given back yet.
        if greedy.try_read(&mut [0; 64]).is_ok() {
            greedy = stage.greedy().await;
        }
    }
    assert!(stage.takes(64 << 10).await);
    drop(greedy);
    let end = Instant::now() + PATIENCE;
    while !stage.takes(300 << 10).await {
        assert!(Instant::now() < end);
    }
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let stage = Stage::new(LIMITS, false).await;
    let long = "x".repeat(LIMITS.head * 2);
    let request = stage.http.get(format!("http://{}/", stage.address)).header("Authorization", long);
    match request.send().await {
        Ok(reply) => assert_eq!(reply.status(), 431),
        Err(error) => assert!(error.is_request(), "{error}"),
    }
    assert_eq!(stage.get().await, "127.0.0.1");
}

/// GRUB leaves a connection open for the system that it starts, and calls from the same port after the next boot.
#[tokio::test]
async fn a_connection_that_its_client_has_forgotten_is_not_in_the_way_of_its_next_one() {
    let stage = Stage::new(LIMITS, false).await;
    let call = async |from: SocketAddr| {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(from).unwrap();
        let mut stream = socket.connect(stage.address).await?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        // The length of the client's address, by a name that loaders know.
        assert!(answer.contains("\r\nContent-Length: 10\r\n"), "{answer}");
        io::Result::Ok(stream)
    };
    // An address that nobody else has, whose ports are free again at once.
    let forgotten = call("127.77.0.1:0".parse().unwrap()).await.unwrap();
    let own = forgotten.local_addr().unwrap();
    // It is reset, which somebody who had not forgotten it would notice.
    let end = Instant::now() + PATIENCE;
    while forgotten.take_error().unwrap().is_none() {
        assert!(Instant::now() < end, "it is still open");
        sleep(Duration::from_millis(20)).await;
    }
    drop(forgotten);
    call(own).await.unwrap();
}
