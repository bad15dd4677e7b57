//! Many clients of one HTTP server, and how long the server keeps them waiting.
//!
//! The clients share the processors with the server that they measure. So this crate is optimised where all others of a
//! developer's build are not, and its functions take closures by reference: their code is compiled here, not in the caller.

pub use hyper::{Method, StatusCode};

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header;
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde::{Deserialize, Serialize};

/// The status of a server that has nobody free for a request, and wants it again later.
const BUSY: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
/// A request that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is asked for.
#[derive(Debug)]
pub struct Request {
    /// What is to be done.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// JSON, or nothing.
    pub body: String,
    /// The status that the answer must have.
    pub status: StatusCode,
}

impl Request {
    /// One without a body.
    pub fn get(path: String, status: StatusCode) -> Self {
        Self { method: Method::GET, path, body: String::new(), status }
    }
}

/// How requests were answered. Those that were turned away count for nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Requests in a second.
    pub per_second: f64,
    /// Mean time of one, in milliseconds.
    pub mean_ms: f64,
    /// The time that half of them keep to, in milliseconds.
    pub p50_ms: f64,
    /// The time that 99 of 100 keep to, in milliseconds.
    pub p99_ms: f64,
    /// How many were turned away because nobody was free.
    pub turned_away: usize,
}

/// Lets so many clients ask one request after the other, for so long. `request` makes the one of a number.
pub fn load(
    port: u16,
    clients: usize,
    duration: Duration,
    request: &(dyn Fn(u64) -> Request + Sync),
) -> Result<Figures> {
    load_several(&[port], clients, duration, request)
}

/// The same for several servers, whose clients are as many for each.
pub fn load_several(
    ports: &[u16],
    clients: usize,
    duration: Duration,
    request: &(dyn Fn(u64) -> Request + Sync),
) -> Result<Figures> {
    let start = Instant::now();
    let answered = ask(ports, clients, duration, None, request)?;
    Ok(figures(answered.into_iter().map(|(_, time)| time).collect(), start.elapsed()))
}

/// Lets so many clients together ask so many requests a second, whatever the answers take: a request that is late because
/// its client was busy has waited since it was due. Tells how requests of each kind were answered.
pub fn paced(
    port: u16,
    clients: usize,
    per_second: u32,
    duration: Duration,
    kinds: usize,
    request: &(dyn Fn(u64) -> (usize, Request) + Sync),
) -> Result<Vec<Figures>> {
    let start = Instant::now();
    let answered = ask(&[port], clients, duration, Some(per_second), &|number| request(number).1)?;
    let elapsed = start.elapsed();
    let mut times = vec![Vec::new(); kinds];
    for (number, time) in answered {
        times[request(number).0].push(time);
    }
    Ok(times.into_iter().map(|times| figures(times, elapsed)).collect())
}

/// The time that each request took, by its number.
fn ask(
    ports: &[u16],
    clients: usize,
    duration: Duration,
    per_second: Option<u32>,
    request: &(dyn Fn(u64) -> Request + Sync),
) -> Result<Vec<(u64, Option<Duration>)>> {
    let (next, start) = (&AtomicU64::new(0), Instant::now());
    let ask = |port: u16| -> Result<Vec<(u64, Option<Duration>)>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (client, mut times) = (Client::new(port), Vec::new());
        while start.elapsed() < duration {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let due = per_second.map(|rate| start + Duration::from_secs_f64(number as f64 / f64::from(rate)));
            let asked = due.unwrap_or_else(Instant::now);
            thread::sleep(asked.saturating_duration_since(Instant::now()));
            let is_taken = runtime.block_on(client.ask(&request(number)))?;
            times.push((number, is_taken.then(|| asked.elapsed())));
        }
        Ok(times)
    };
    let times = thread::scope(|scope| {
        let ports = ports.iter().cycle().take(clients);
        let clients: Vec<_> = ports.map(|port| scope.spawn(move || ask(*port))).collect();
        let ended =
            clients.into_iter().map(|client| client.join().unwrap_or_else(|_| bail!("a client panicked")));
        ended.collect::<Result<Vec<_>>>()
    })?;
    Ok(times.concat())
}

/// The figures of requests by the times they took; none for those that were turned away.
fn figures(asked: Vec<Option<Duration>>, elapsed: Duration) -> Figures {
    let all = asked.len();
    let mut times: Vec<_> = asked.into_iter().flatten().collect();
    times.sort_unstable();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    let count = times.len().max(1);
    let keep = |percent: usize| times.get((count * percent).div_ceil(100) - 1).copied().unwrap_or_default();
    let (p50, p99) = (keep(50), keep(99));
    Figures {
        per_second: times.len() as f64 / elapsed.as_secs_f64(),
        mean_ms: milliseconds(times.iter().sum()) / count as f64,
        p50_ms: milliseconds(p50),
        p99_ms: milliseconds(p99),
        turned_away: all - times.len(),
    }
}

/// A client, with the connection that the server lets it keep.
struct Client {
    port: u16,
    http: legacy::Client<HttpConnector, Full<Bytes>>,
}

impl Client {
    fn new(port: u16) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self { port, http: legacy::Client::builder(TokioExecutor::new()).build(connector) }
    }

    /// Whether the request was taken, and not turned away.
    async fn ask(&self, request: &Request) -> Result<bool> {
        // A server may end a connection that it kept, and the next request finds out.
        let (status, body) = match self.exchange(request).await {
            Err(_) => self.exchange(request).await?,
            answer => answer?,
        };
        if ![request.status, BUSY].contains(&status) {
            let (path, body) = (&request.path, String::from_utf8_lossy(&body));
            bail!("{} {path} was answered with {status}, not {}: {body}", request.method, request.status);
        }
        Ok(status == request.status)
    }

    /// The status of the answer, and the whole of its body.
    async fn exchange(&self, request: &Request) -> Result<(StatusCode, Bytes)> {
        let message = hyper::Request::builder()
            .method(request.method.clone())
            .uri(format!("http://127.0.0.1:{}{}", self.port, request.path))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .header("X-OpenStack-Ironic-API-Version", "1.68")
            .body(Full::from(request.body.clone()))?;
        let answer = async {
            let answer = self.http.request(message).await?;
            let status = answer.status();
            anyhow::Ok((status, answer.into_body().collect().await?.to_bytes()))
        };
        tokio::time::timeout(PATIENCE, answer).await.context("no answer")?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    #[test]
    fn the_slowest_of_a_hundred_is_left_out_and_the_next_told() {
        let times = (1..=100).map(|time| Some(Duration::from_millis(time))).rev().chain([None]).collect();
        let figures = figures(times, Duration::from_secs(2));
        let expected =
            Figures { per_second: 50.0, mean_ms: 50.5, p50_ms: 50.0, p99_ms: 99.0, turned_away: 1 };
        assert_eq!(figures, expected);
    }

    #[test]
    fn clients_ask_again_on_another_connection_and_want_their_status() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                // Two requests, then the connection ends without a word.
                for _ in 0..2 {
                    let mut row = String::new();
                    while stream.read_line(&mut row).unwrap_or(0) > 2 {
                        row.clear();
                    }
                    let answer = b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}";
                    if stream.get_mut().write_all(answer).is_err() {
                        break;
                    }
                }
            }
        });
        let request = |status| move |_| Request::get("/".to_owned(), status);
        assert!(
            load(port, 1, Duration::from_millis(50), &request(StatusCode::ACCEPTED)).unwrap().per_second
                > 0.0
        );
        let error = load(port, 1, Duration::from_millis(50), &request(StatusCode::OK)).unwrap_err();
        assert_eq!(error.to_string(), "GET / was answered with 202 Accepted, not 200 OK: {}");
    }
}
