//! Clients that are slow, greedy, many or mad, against the real listener.

use super::contract_tests::assert_fault;
use super::limits::Limits;
use super::test_server::{DEADLINE, Server, TOKEN};
use super::{routes, server};
use crate::commands::allowance::Allowance;
use futures_util::stream;
use reqwest::Body;
use serde_json::json;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Short enough for a test, long enough for an honest client on a busy machine.
const PATIENCE: Duration = Duration::from_secs(2);

fn strict() -> Server {
    let limits = Limits { patience: PATIENCE, connections: 8, body_bytes: 64 << 10, ..Limits::default() };
    Server::start_within(limits, Allowance::of(1 << 20), Some(TOKEN))
}

fn command_path() -> String {
    format!("/v1/commands/?wait=true&agent_token={TOKEN}")
}

/// Waits until the agent closes a connection.
async fn closed(stream: &mut TcpStream) -> Duration {
    let started = Instant::now();
    let mut buffer = [0; 1024];
    let end = async { while !matches!(stream.read(&mut buffer).await, Ok(0) | Err(_)) {} };
    tokio::time::timeout(DEADLINE, end).await.unwrap();
    started.elapsed()
}

#[tokio::test]
async fn a_client_that_never_speaks_is_dropped() {
    let server = strict();
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    assert!(closed(&mut silent).await >= PATIENCE / 2);
}

#[tokio::test]
async fn a_client_that_does_not_speak_tls_is_dropped() {
    let server = strict();
    for bytes in [&b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"[..], &[0; 64], &[0x16, 3, 1, 0xff, 0xff]] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        closed(&mut stream).await;
    }
    assert_eq!(server.get("/v1/status").await.status, 200);
}

#[tokio::test]
async fn a_head_that_drips_in_is_cut_off() {
    let server = strict();
    let mut stream = server.connect().await;
    let started = Instant::now();
    let dripping = async {
        stream.write_all(b"GET /v1/status HTTP/1.1\r\n").await?;
        loop {
            stream.write_all(b"x: y\r\n").await?;
            let mut answer = [0; 64];
            // What is read is the end, or a complaint before it.
            match tokio::time::timeout(Duration::from_millis(100), stream.read(&mut answer)).await {
                Err(_) => {}
                Ok(read) => return read,
            }
        }
    };
    let _: io::Result<usize> = tokio::time::timeout(DEADLINE, dripping).await.unwrap();
    assert!(started.elapsed() >= PATIENCE / 2);
    assert_eq!(server.get("/v1/status").await.status, 200);
}

#[tokio::test]
async fn a_connection_without_a_second_request_is_closed() {
    let server = strict();
    let mut stream = server.connect().await;
    stream.write_all(b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut answer)).await.unwrap();
    assert!(read.is_ok() || !answer.is_empty(), "{read:?}");
    assert!(String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn a_body_that_never_ends_is_answered_408() {
    let server = strict();
    for body in [
        Body::wrap_stream(stream::pending::<Result<Vec<u8>, io::Error>>()),
        Body::wrap_stream(futures_util::StreamExt::chain(
            stream::iter([Ok::<_, io::Error>(b"{\"name\": ".to_vec())]),
            stream::pending(),
        )),
    ] {
        let reply = server.ask("POST", &command_path(), body).await;
        assert_fault(&reply, 408, "408 Request Timeout: ");
    }
    assert_eq!(server.command("test.count", json!({}), "true").await.status, 200);
}

#[tokio::test]
async fn bodies_that_are_too_large_are_answered_413() {
    let server = strict();
    let chunks = stream::iter((0..65).map(|_| Ok::<_, io::Error>(vec![b' '; 1 << 10])));
    let announced = server.client.post(server.url(&command_path())).header("content-length", "99999999999");
    let announced = announced.body(Body::wrap_stream(stream::pending::<Result<Vec<u8>, io::Error>>()));
    assert_eq!(announced.send().await.unwrap().status(), 413);
    for body in [Body::from(vec![b' '; (64 << 10) + 1]), Body::wrap_stream(chunks)] {
        let reply = server.ask("POST", &command_path(), body).await;
        assert_fault(&reply, 413, "413 ");
    }
    let mut fitting = json!({"name": "test.count", "params": {}}).to_string().into_bytes();
    fitting.resize(64 << 10, b' ');
    assert_eq!(server.ask("POST", &command_path(), fitting).await.status, 200);
}

#[tokio::test]
async fn bodies_that_are_no_json_are_answered_400() {
    let server = Server::start();
    let nested = |open: &str, close: &str| {
        format!("{{\"name\": \"a.b\", \"params\": {}{}}}", open.repeat(10_000), close.repeat(10_000))
            .into_bytes()
    };
    for body in [
        nested("[", "]"),
        nested("{\"a\":", "}"),
        b"{\"name\": \"a.b\", \"params\": {\"x\": \"\xff\"}}".to_vec(),
        b"{\"name\": \"a.b\", \"params\": {\"x\": NaN}}".to_vec(),
        b"{\"name\": \"a.b\", \"params\": {\"x\": 1e999}}".to_vec(),
        vec![0; 4096],
    ] {
        assert_fault(&server.ask("POST", &command_path(), body).await, 400, "400 Bad Request: ");
    }
}

#[tokio::test]
async fn x42_silence_after_the_handshake_is_ended_too() {
    let server = strict();
    for said in [&b""[..], b"GET /v1/status HTTP/1.1\r\n"] {
        let mut stream = server.connect().await;
        stream.write_all(said).await.unwrap();
        let mut answer = Vec::new();
        let end = stream.read_to_end(&mut answer);
        tokio::time::timeout(DEADLINE, end).await.expect("the connection is closed").ok();
    }
}

#[tokio::test]
async fn x41_http_2_is_not_spoken() {
    let server = strict();
    let mut stream = server.connect().await;
    // The preface, and empty SETTINGS (RFC 9113, 3.4).
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(DEADLINE, stream.read_to_end(&mut answer)).await.expect("it is closed").ok();
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400 "), "{answer:?}");
}

#[tokio::test]
async fn x41_a_stranger_gets_one_short_answer_on_a_connection() {
    let server = strict();
    let long = "y".repeat(7000);
    for (path, status) in
        [("/v1/status", 200), ("/", 200), (long.as_str(), 404), ("/v1/commands", 308), ("/v1/commands/", 401)]
    {
        let mut stream = server.connect().await;
        let request = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", path.trim_start_matches('/'));
        stream.write_all(request.repeat(2).as_bytes()).await.ok();
        let mut answer = Vec::new();
        tokio::time::timeout(DEADLINE, stream.read_to_end(&mut answer)).await.unwrap().ok();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path:.20}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{path:.20}: {answer}");
        assert!(answer.len() < 6 << 10, "{path:.20}: {} bytes", answer.len());
    }
}

#[tokio::test]
async fn x49_a_request_names_one_host_and_links_have_the_scheme_of_the_connection() {
    let server = strict();
    for (headers, status) in [
        ("HTTP/1.1\r\nHost: a\r\n", 200),
        ("HTTP/1.0\r\n", 200),
        ("HTTP/1.1\r\n", 400),
        ("HTTP/1.1\r\nHost: a\r\nHost: a\r\n", 400),
        ("HTTP/1.0\r\nHost: a\r\nHost: b\r\n", 400),
    ] {
        let mut stream = server.connect().await;
        stream.write_all(format!("GET /v1/ {headers}\r\n").as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        tokio::time::timeout(DEADLINE, stream.read_to_end(&mut answer)).await.unwrap().ok();
        let answer = String::from_utf8_lossy(&answer);
        assert_eq!(answer.split(' ').nth(1), Some(status.to_string().as_str()), "{headers}: {answer}");
        assert!(status == 400 || answer.contains("\"https://"), "{answer}");
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let router = routes::router(Arc::clone(&server.agent), crate::extensions::find);
    tokio::spawn(server::serve(listener, None, router, Allowance::of_machine(), pending()));
    for path in ["/", "/v1/"] {
        let text = server.client.get(format!("{base}{path}")).send().await.unwrap().text().await.unwrap();
        assert!(text.contains(&format!("\"{base}/v1")) && !text.contains("https://127"), "{text}");
    }
}

#[tokio::test]
async fn x45_names_of_megabytes_are_not_kept() {
    let server = Server::start();
    let name = "x".repeat(2 << 20);
    for (length, status, error) in [(name.len(), 413, json!(null)), (1000, 200, json!("TypeError"))] {
        let mut params = json!({"text": "x"});
        params[&name[..length]] = json!(1);
        for _ in 0..3 {
            let failed = server.command("test.echo", params.clone(), "true").await;
            assert_eq!((failed.status, &failed.body["command_error"]["type"]), (status, &error));
        }
    }
    let unknown = server.command(&format!("{name}.x"), json!({}), "true").await;
    assert_fault(&unknown, 404, "Not found: Extension with id x");
    let list = server.get(&format!("/v1/commands/?agent_token={TOKEN}")).await.body.to_string();
    assert!(list.len() < 16 << 10, "{} bytes of {list:.100}", list.len());
}

#[tokio::test]
async fn s01_a_body_is_not_even_read_without_the_token() {
    let server = strict();
    let endless = Body::wrap_stream(stream::pending::<Result<Vec<u8>, io::Error>>());
    let started = Instant::now();
    let reply = server.ask("POST", "/v1/commands/", endless).await;
    assert_fault(&reply, 401, "401 Unauthorized: Token invalid.");
    assert!(started.elapsed() < DEADLINE);
}

#[tokio::test]
async fn odd_paths_and_queries_are_answered() {
    let server = Server::start();
    for (path, status) in [
        ("/v1/commands/%FF%FE?agent_token=TOKEN", 404),
        ("/v1/commands/%00?agent_token=TOKEN", 404),
        ("/v1/commands/..%2f..%2fetc?agent_token=TOKEN", 404),
        ("/v1/commands/?agent_token=%FF", 401),
        ("/v1/commands/?agent_token", 401),
        ("/v1/commands/?&&=&agent_token=TOKEN&x=y", 200),
        ("/v1/commands/?agent_token=TOKEN&agent_token=TOKEN&wait=true&wait=false", 200),
        ("/v1/status?agent_token=wrong&nosuch=1", 200),
    ] {
        let reply = server.get(&path.replace("TOKEN", TOKEN)).await;
        assert_eq!(reply.status, status, "{path}: {reply:?}");
        assert!(reply.body.is_object(), "{path}: {reply:?}");
    }
}

#[tokio::test]
async fn heads_that_are_too_large_do_not_reach_the_agent() {
    let server = Server::start();
    let request = server.client.get(server.url("/v1/status")).header("x", "y".repeat(1 << 20));
    let refused = request.send().await;
    assert!(refused.is_err() || refused.is_ok_and(|reply| reply.status() == 431));
    assert_eq!(server.get("/v1/status").await.status, 200);
}

#[tokio::test]
async fn many_idle_connections_do_not_keep_the_conductor_out() {
    let server = strict();
    let release = server.hold();
    let conductor = server.client_at([127, 0, 0, 2]);
    let url = server.url(&command_path());
    let body = json!({"name": "test.hold", "params": {}}).to_string();
    let waiting = tokio::spawn(conductor.post(&url).body(body).send());
    let mut held = Vec::new();
    for round in 0..10 {
        for _ in 0..8 {
            held.push(connect_from([127, 0, 0, 3], &server).await);
        }
        // A new connection each time, and from the crowd's own address too.
        for client in [server.client_at([127, 0, 0, 2]), server.client_at([127, 0, 0, 3])] {
            let reply = client.get(server.url("/v1/status")).send().await;
            assert_eq!(reply.unwrap().status(), 200, "round {round}");
        }
    }
    release.send(()).unwrap();
    // What was under way all the time kept its connection.
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
}

async fn connect_from(address: [u8; 4], server: &Server) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((std::net::Ipv4Addr::from(address), 0).into()).unwrap();
    socket.connect(server.address).await.unwrap()
}
