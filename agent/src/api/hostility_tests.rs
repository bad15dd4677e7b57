//! Crowds of hostile clients against the real listener in a process of its own, whose memory is looked at.

use super::limits::Limits;
use super::test_server::{DEADLINE, Server, TOKEN, trusting};
use crate::commands::allowance::Allowance;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use farrier_tests::agent::hostility::{self, Crowd, Hostility, Victim};
use flate2::Compression;
use flate2::write::GzEncoder;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
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
const SIEGE: Duration = Duration::from_secs(1);
/// How long an honest request may take: a sixth of what Ironic waits for, however busy this machine is.
const PATIENCE: Duration = Duration::from_secs(10);
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
        let server = Server::start_within(Limits::default(), Allowance::of(QUARTER), Some(TOKEN));
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
        self.answer(body, true).await.0
    }

    /// Status and body of what is answered to a command.
    async fn answer(&self, body: Vec<u8>, wait: bool) -> (u16, Value) {
        let url = format!("https://{}/v1/commands/?wait={wait}&agent_token={TOKEN}", self.address);
        let reply = self.client().post(url).body(body).timeout(DEADLINE).send().await.unwrap();
        (reply.status().as_u16(), reply.json().await.unwrap())
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x41_x42_strangers_take_at_most_16_mib_and_keep_nobody_out() {
    if std::env::var_os(SERVES).is_some() {
        return Neighbour::serve().await;
    }
    let neighbour = Neighbour::start("x41_x42_strangers_take_at_most_16_mib_and_keep_nobody_out");
    neighbour.honest_request().await;
    let before = neighbour.memory("VmRSS");
    for hostility in Hostility::ALL {
        let victim = Victim::new(neighbour.address, neighbour.address.ip(), &neighbour.certificate);
        let crowd = Crowd::gather(hostility, CROWD, &victim);
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
        assert!(crowd.meetings() >= CROWD / 4, "{hostility:?}: {} meetings", crowd.meetings());
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
        ("name", echo(format!("{{\"{}\":0}}", "n".repeat(8 << 20))), 413),
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

/// A command with a text.
fn with_text(name: &str, text: &str) -> Vec<u8> {
    json!({"name": format!("test.{name}"), "params": {"text": text}}).to_string().into_bytes()
}

/// A config drive as conductors send it: so many MiB that cannot be packed, and so many of zeros behind them.
fn config_drive(dense: usize, zeros: usize) -> String {
    let mut content = vec![0; (dense + zeros) << 20];
    rand::fill(&mut content[..dense << 20]);
    content[32769..32774].copy_from_slice(b"CD001");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&content).unwrap();
    STANDARD.encode(encoder.finish().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x43_a_config_drive_takes_its_part_of_the_quarter_or_is_refused() {
    if std::env::var_os(SERVES).is_some() {
        return Neighbour::serve().await;
    }
    let neighbour = Neighbour::start("x43_a_config_drive_takes_its_part_of_the_quarter_or_is_refused");
    neighbour.honest_request().await;
    let before = neighbour.memory("VmRSS");
    for (dense, zeros, is_taken) in [(6, 1, true), (1, 24, true), (1, 62, false), (9, 54, false)] {
        let (status, reply) =
            neighbour.answer(with_text("config_drive", &config_drive(dense, zeros)), true).await;
        let name = format!("{dense} and {zeros} MiB");
        let more = neighbour.memory("VmHWM").saturating_sub(before);
        println!("{name}: {} KiB more", more >> 10);
        assert_eq!(status, 200, "{name}: {reply}");
        if is_taken {
            let size = (dense + zeros) << 20;
            assert_eq!(reply["command_result"]["result"], format!("config_drive: {size}"), "{name}");
        } else {
            let details = reply["command_error"]["details"].as_str().unwrap();
            assert!(details.contains("make it smaller, or give the machine more memory"), "{name}: {reply}");
        }
        assert!(more <= QUARTER as u64, "{name}: {} KiB more", more >> 10);
    }
}

#[tokio::test]
async fn x43_what_a_running_command_holds_is_counted() {
    let server = Server::start_within(Limits::default(), Allowance::of(1 << 20), Some(TOKEN));
    let path = format!("/v1/commands/?agent_token={TOKEN}");
    let text = "x".repeat(200 << 10);
    let released = server.hold();
    assert_eq!(server.ask("POST", &path, with_text("hold_text", &text)).await.status, 200);
    let refused = server.ask("POST", &path, with_text("echo", &text)).await;
    assert_eq!(refused.status, 413, "the first one still has its memory: {}", refused.body);
    released.send(()).unwrap();
    let deadline = Instant::now() + DEADLINE;
    while server.ask("POST", &path, with_text("echo", &text)).await.status != 200 {
        assert!(Instant::now() < deadline, "the memory does not come back");
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
        let tls = hostility::trusting(&neighbour.certificate);
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
