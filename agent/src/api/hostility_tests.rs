//! Crowds of hostile clients against the real listener in a process of its own, whose memory is looked at.

use super::limits::Limits;
use super::test_server::{DEADLINE, Server, TOKEN, tls_connector, trusting};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// Set in the process that serves.
const SERVES: &str = "FARRIER_TEST_SERVES";
/// What begins the line that tells where.
const HERE: &str = "serving at ";
const MIB: u64 = 1 << 20;
/// A crowd.
const CROWD: usize = 200;
/// How long each crowd is there.
const SIEGE: Duration = Duration::from_secs(3);
/// How long an honest request may take: a sixth of what Ironic waits for, however busy this machine is.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long who was closed out stays away.
const AWAY: Duration = Duration::from_secs(2);
/// The quarter of the memory of the smallest machine.
const QUARTER: usize = 64 << 20;

/// The listener in another process, which runs the same test.
struct Neighbour {
    process: Child,
    address: SocketAddr,
    certificate: String,
}

impl Neighbour {
    fn start(test: &str) -> Self {
        crate::network::http::install_tls_provider();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([&format!("api::hostility_tests::{test}"), "--exact", "--nocapture"])
            // Large blocks go back to the kernel when they are freed, as with the agent's allocator.
            .envs([(SERVES, "1"), ("MALLOC_ARENA_MAX", "2"), ("MALLOC_MMAP_THRESHOLD_", "131072")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains(HERE)).unwrap();
        let (_, text) = line.split_once(HERE).unwrap();
        let told: Value = serde_json::from_str(text).unwrap();
        let text = |name: &str| told[name].as_str().unwrap().to_owned();
        Self { process, address: text("address").parse().unwrap(), certificate: text("certificate") }
    }

    /// What the other process does, until nobody needs it any more.
    async fn serve() {
        let limits = Limits { memory: QUARTER, ..Limits::default() };
        let server = Server::start_with(limits, Some(TOKEN));
        let told = json!({"address": server.address, "certificate": server.certificate});
        println!("{HERE}{told}");
        std::io::stdout().flush().unwrap();
        tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()))
            .await
            .unwrap()
            .unwrap();
    }

    fn client(&self) -> reqwest::Client {
        trusting(&self.certificate).local_address(IpAddr::from([127, 0, 0, 2])).build().unwrap()
    }

    /// Time that an honest request with the token takes, on a new connection.
    async fn honest_request(&self) -> Duration {
        let started = Instant::now();
        let url = format!("https://{}/v1/commands/?agent_token={TOKEN}", self.address);
        let reply = self.client().get(url).timeout(DEADLINE).send().await.unwrap();
        assert_eq!(reply.status(), 200);
        started.elapsed()
    }

    async fn command(&self, body: Vec<u8>) -> u16 {
        let url = format!("https://{}/v1/commands/?wait=true&agent_token={TOKEN}", self.address);
        let reply = self.client().post(url).body(body).timeout(DEADLINE).send().await.unwrap();
        reply.status().as_u16()
    }

    /// A field of its memory in `/proc`, in bytes.
    fn memory(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim_matches([':', ' ', '\t', 'k', 'B']).parse::<u64>().unwrap() << 10
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// What a hostile client does on a connection.
#[derive(Debug, Clone, Copy)]
enum Hostility {
    /// Nothing, not even TLS.
    Silence,
    /// Bytes that look like the beginning of TLS.
    Garbage,
    /// Nothing after the handshake.
    SilenceInTls,
    /// A head, byte by byte.
    SlowHead,
    /// A head of headers only.
    Headers,
    /// A path without an end.
    Path,
    /// HTTP/2 by prior knowledge, with a window of 0 and long paths.
    Http2,
    /// Requests, whose answers it does not read.
    Pipelining,
    /// A body, without the token.
    Body,
}

impl Hostility {
    const ALL: [Self; 9] = [
        Self::Silence,
        Self::Garbage,
        Self::SilenceInTls,
        Self::SlowHead,
        Self::Headers,
        Self::Path,
        Self::Http2,
        Self::Pipelining,
        Self::Body,
    ];

    fn is_below_tls(self) -> bool {
        matches!(self, Self::Silence | Self::Garbage)
    }

    /// The first bytes, and those that follow again and again.
    fn words(self) -> (Vec<u8>, Vec<u8>) {
        let long = "y".repeat(7000);
        match self {
            Self::Silence | Self::SilenceInTls => (vec![], vec![]),
            // A record of the greatest length with the beginning of a message that is larger still.
            Self::Garbage => (vec![0x16, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff, 3, 3], vec![0x5a; 1000]),
            Self::SlowHead => (b"GET /v1/status HTTP/1.1\r\nHost: x\r\nx: ".to_vec(), b"y".to_vec()),
            Self::Headers => (b"GET / HTTP/1.1\r\nHost: x\r\n".to_vec(), b"x: y\r\n".repeat(1000)),
            Self::Path => (b"GET /".to_vec(), long.into_bytes()),
            Self::Http2 => {
                let mut words = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
                // SETTINGS with INITIAL_WINDOW_SIZE 0 (RFC 9113, 6.5.2).
                words.extend([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]);
                (words, long.into_bytes())
            }
            Self::Pipelining => {
                let one = format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes();
                (vec![], [one, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(500)].concat())
            }
            Self::Body => {
                let head = "POST /v1/commands/?agent_token=wrong HTTP/1.1\r\nHost: x\r\nContent-Length: 90000000\r\n\r\n";
                (head.as_bytes().to_vec(), vec![b' '; 16 << 10])
            }
        }
    }

    /// Goes on until the other side has had enough.
    async fn speak(self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
        let (first, rest) = self.words();
        stream.write_all(&first).await?;
        stream.flush().await?;
        if rest.is_empty() {
            stream.read_u8().await?;
        }
        loop {
            stream.write_all(&rest).await?;
            stream.flush().await?;
            // One byte at a time is slow only if there is time between them.
            let pause = if rest.len() == 1 { Duration::from_millis(50) } else { Duration::from_millis(1) };
            tokio::time::sleep(pause).await;
        }
    }

    /// Comes again as often as it is closed out.
    async fn harass(self, address: SocketAddr, tls: TlsConnector) {
        loop {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(2048).unwrap();
            socket.bind((Ipv4Addr::new(127, 0, 0, 3), 0).into()).unwrap();
            let Ok(stream) = socket.connect(address).await else { continue };
            if self.is_below_tls() {
                self.speak(stream).await.ok();
            } else if let Ok(stream) = tls.connect(ServerName::from(address.ip()), stream).await {
                self.speak(stream).await.ok();
            }
            tokio::time::sleep(AWAY).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x41_x42_strangers_take_at_most_16_mib_and_keep_nobody_out() {
    if std::env::var_os(SERVES).is_some() {
        return Neighbour::serve().await;
    }
    let neighbour = Neighbour::start("x41_x42_strangers_take_at_most_16_mib_and_keep_nobody_out");
    neighbour.honest_request().await;
    let before = neighbour.memory("VmRSS");
    for hostility in Hostility::ALL {
        let mut crowd = JoinSet::new();
        let tls = tls_connector(&neighbour.certificate);
        for _ in 0..CROWD {
            crowd.spawn(hostility.harass(neighbour.address, tls.clone()));
        }
        let (started, mut honest) = (Instant::now(), Vec::new());
        while started.elapsed() < SIEGE {
            honest.push(neighbour.honest_request().await);
            let more = neighbour.memory("VmRSS").saturating_sub(before);
            assert!(more <= 16 * MIB, "{hostility:?}: {} KiB more", more >> 10);
        }
        honest.sort();
        let median = honest[honest.len() / 2];
        let more = neighbour.memory("VmHWM").saturating_sub(before);
        println!("{hostility:?}: {} KiB more, {} requests in {median:?}", more >> 10, honest.len());
        assert!(median < PATIENCE, "{hostility:?}: {honest:?}");
    }
    let more = neighbour.memory("VmHWM").saturating_sub(before);
    assert!(more <= 16 * MIB, "{} KiB more at the worst", more >> 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x43_who_has_the_token_takes_a_quarter_of_the_memory_at_most() {
    if std::env::var_os(SERVES).is_some() {
        return Neighbour::serve().await;
    }
    let neighbour = Neighbour::start("x43_who_has_the_token_takes_a_quarter_of_the_memory_at_most");
    neighbour.honest_request().await;
    let before = neighbour.memory("VmRSS");
    let echo =
        |text: String| format!(r#"{{"name": "test.echo", "params": {{"text": {text}}}}}"#).into_bytes();
    let step = |size: usize| {
        let step = json!({"step": "nosuch", "interface": "deploy", "args": {"a": "x".repeat(size)}});
        let node = json!({"uuid": "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11"});
        let params = json!({"step": step, "node": node, "ports": []});
        json!({"name": "deploy.execute_deploy_step", "params": params}).to_string().into_bytes()
    };
    for (name, body, status) in [
        ("array", echo(format!("[{}0]", "0,".repeat(8 << 20))), 413),
        ("lists", echo(format!("[{}[]]", "[],".repeat(1 << 20))), 413),
        ("objects", echo(format!("[{}0]", r#"{"":0},"#.repeat(16 << 10))), 413),
        ("fewer objects", echo(format!("[{}0]", r#"{"":0},"#.repeat(8 << 10))), 400),
        ("depth", echo("[".repeat(1 << 20)), 413),
        ("config drive", echo(format!("\"{}\"", "x".repeat(87 << 20))), 413),
        ("argument", step(20 << 20), 413),
        ("smaller argument", step(14 << 20), 200),
        ("text", echo(format!("\"{}\"", "x".repeat(14 << 20))), 200),
    ] {
        assert_eq!(neighbour.command(body).await, status, "{name}");
        let more = neighbour.memory("VmHWM").saturating_sub(before);
        println!("{name}: {} KiB more", more >> 10);
        assert!(more <= QUARTER as u64, "{name}: {} KiB more", more >> 10);
    }
}

/// Begins a command with a body of so many bytes, and sends of it what the agent takes but for the last byte.
async fn begin(address: SocketAddr, tls: TlsConnector, bytes: usize) -> impl Sized {
    let stream = TcpStream::connect(address).await.unwrap();
    let mut stream = tls.connect(ServerName::from(address.ip()), stream).await.ok()?;
    let path = format!("/v1/commands/?agent_token={TOKEN}");
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", bytes + 1);
    stream.write_all(head.as_bytes()).await.ok()?;
    for _ in 0..bytes / 1024 {
        stream.write_all(&[b' '; 1024]).await.ok()?;
    }
    stream.flush().await.ok()?;
    Some(stream)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x44_unfinished_bodies_keep_out_nobody_who_sends_whole_requests() {
    if std::env::var_os(SERVES).is_some() {
        return Neighbour::serve().await;
    }
    let neighbour = Neighbour::start("x44_unfinished_bodies_keep_out_nobody_who_sends_whole_requests");
    let count = br#"{"name": "test.count", "params": {}}"#;
    for bytes in [0, 1 << 20, 14 << 20] {
        let mut crowd = JoinSet::new();
        let tls = tls_connector(&neighbour.certificate);
        for _ in 0..64 {
            crowd.spawn(begin(neighbour.address, tls.clone(), bytes));
        }
        // The first of them have said what they say.
        let unfinished = crowd.join_next().await;
        let mut times = Vec::new();
        for _ in 0..9 {
            let started = Instant::now();
            assert_eq!(neighbour.command(count.to_vec()).await, 200);
            times.push(started.elapsed());
        }
        times.sort();
        println!("{bytes} bytes each: {times:?}");
        assert!(times[times.len() / 2] < PATIENCE, "{bytes} bytes each: {times:?}");
        drop(unfinished);
    }
}
