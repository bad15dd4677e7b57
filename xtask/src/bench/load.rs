//! Many clients of one HTTP server, and how long it keeps them waiting.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Serialize;

/// The status of a server that has nobody free for a request, and wants it again later.
const BUSY: u16 = 503;
/// A request that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is asked for.
#[derive(Debug)]
pub struct Request {
    /// Method and path, as they stand in the first line.
    pub line: String,
    /// JSON, or nothing.
    pub body: String,
    /// The status that the answer must have.
    pub status: u16,
}

/// How requests were answered. Those that were turned away count for nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// Requests in a second.
    pub per_second: f64,
    /// Mean time of one, in milliseconds.
    pub mean_ms: f64,
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
    request: impl Fn(u64) -> Request + Sync,
) -> Result<Figures> {
    let (next, start) = (AtomicU64::new(0), Instant::now());
    let ask = || -> Result<Vec<Option<Duration>>> {
        let (mut client, mut times) = (Client::new(port), Vec::new());
        while start.elapsed() < duration {
            let request = request(next.fetch_add(1, Ordering::Relaxed));
            let asked = Instant::now();
            let is_taken = client.ask(&request)?;
            times.push(is_taken.then(|| asked.elapsed()));
        }
        Ok(times)
    };
    let times = thread::scope(|scope| {
        let clients: Vec<_> = (0..clients).map(|_| scope.spawn(ask)).collect();
        let ended =
            clients.into_iter().map(|client| client.join().unwrap_or_else(|_| bail!("a client panicked")));
        ended.collect::<Result<Vec<_>>>()
    })?;
    Ok(figures(times.concat(), start.elapsed()))
}

/// The figures of requests by the times they took; none for those that were turned away.
fn figures(asked: Vec<Option<Duration>>, elapsed: Duration) -> Figures {
    let all = asked.len();
    let mut times: Vec<_> = asked.into_iter().flatten().collect();
    times.sort_unstable();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    let count = times.len().max(1);
    let p99 = times.get((count * 99).div_ceil(100) - 1).copied().unwrap_or_default();
    Figures {
        per_second: times.len() as f64 / elapsed.as_secs_f64(),
        mean_ms: milliseconds(times.iter().sum()) / count as f64,
        p99_ms: milliseconds(p99),
        turned_away: all - times.len(),
    }
}

/// A client, with the connection that the server lets it keep.
struct Client {
    port: u16,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    fn new(port: u16) -> Self {
        Self { port, connection: None }
    }

    /// Whether the request was taken, and not turned away.
    fn ask(&mut self, request: &Request) -> Result<bool> {
        let (mut connection, is_kept) = match self.connection.take() {
            Some(connection) => (connection, true),
            None => (self.connect()?, false),
        };
        let outcome = exchange(&mut connection, request);
        let (status, stays) = match outcome {
            // A server may end a connection that it kept, and the next request finds out.
            Err(_) if is_kept => {
                connection = self.connect()?;
                exchange(&mut connection, request)?
            }
            outcome => outcome?,
        };
        if ![request.status, BUSY].contains(&status) {
            bail!("{} was answered with {status}, not {}", request.line, request.status);
        }
        self.connection = stays.then_some(connection);
        Ok(status == request.status)
    }

    fn connect(&self) -> Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).context("nobody listens")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(BufReader::new(stream))
    }
}

/// The status of the answer, and whether the connection stays.
fn exchange(connection: &mut BufReader<TcpStream>, request: &Request) -> Result<(u16, bool)> {
    let Request { line, body, .. } = request;
    let text = format!(
        "{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json\r\n\
         X-OpenStack-Ironic-API-Version: 1.68\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.get_mut().write_all(text.as_bytes())?;
    let mut head = Vec::new();
    loop {
        let mut row = String::new();
        if connection.read_line(&mut row)? == 0 {
            bail!("the server ended the connection");
        }
        match row.trim_end() {
            "" => break,
            row => head.push(row.to_ascii_lowercase()),
        }
    }
    let status = head.first().and_then(|row| row.split(' ').nth(1)?.parse().ok()).context("no HTTP")?;
    let length = head.iter().find_map(|row| row.strip_prefix("content-length:")?.trim().parse().ok());
    let length: u64 = length.with_context(|| format!("an answer without a length: {head:?}"))?;
    std::io::copy(&mut connection.take(length), &mut std::io::sink())?;
    Ok((status, !head.iter().any(|row| row == "connection: close")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_slowest_of_a_hundred_is_left_out_and_the_next_told() {
        let times = (1..=100).map(|time| Some(Duration::from_millis(time))).rev().chain([None]).collect();
        let figures = figures(times, Duration::from_secs(2));
        let expected = Figures { per_second: 50.0, mean_ms: 50.5, p99_ms: 99.0, turned_away: 1 };
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
        let request = |status| move |_| Request { line: "GET /".to_owned(), body: String::new(), status };
        assert!(load(port, 1, Duration::from_millis(50), request(202)).unwrap().per_second > 0.0);
        let error = load(port, 1, Duration::from_millis(50), request(200)).unwrap_err();
        assert_eq!(error.to_string(), "GET / was answered with 202, not 200");
    }
}
