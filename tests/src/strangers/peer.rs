//! A server in the hands of a stranger: whom conductor, agent or operator ask, and who answers what it likes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(20);

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Headers beside those that every answer has, each with the end of its line.
    pub headers: String,
    /// Its JSON.
    pub body: Arc<String>,
}

impl Reply {
    /// One without further headers.
    pub fn new(status: u16, body: &Arc<String>) -> Self {
        Self { status, headers: String::new(), body: Arc::clone(body) }
    }
}

/// The server; it answers until the process ends.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    asked: Arc<AtomicU64>,
}

impl Peer {
    /// Listens at a free port, and answers what it makes of method and path.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub fn start(
        address: impl Into<IpAddr>,
        answer: impl Fn(&str, &str) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((address.into(), 0))?;
        let (address, asked) = (listener.local_addr()?, Arc::<AtomicU64>::default());
        let (answer, counted) = (Arc::new(answer), Arc::clone(&asked));
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (answer, counted) = (Arc::clone(&answer), Arc::clone(&counted));
                // Whoever has enough of an answer goes away.
                thread::spawn(move || speak(&connection, &*answer, &counted).ok());
            }
        });
        Ok(Self { address, asked })
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How often it was asked.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Waits until it was asked so often; false when that takes too long.
    pub fn waits_for(&self, asked: u64, patience: Duration) -> bool {
        let begin = Instant::now();
        while self.asked() < asked && begin.elapsed() < patience {
            thread::sleep(POLL);
        }
        self.asked() >= asked
    }
}

fn speak(connection: &TcpStream, answer: &dyn Fn(&str, &str) -> Reply, asked: &AtomicU64) -> io::Result<()> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or_default();
        }
    }
    io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
    let Reply { status, headers, body } = answer(method, path);
    asked.fetch_add(1, Ordering::Relaxed);
    let head = format!(
        "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nConnection: close\r\n{headers}\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let mut connection = connection;
    connection.write_all(head.as_bytes())?;
    connection.write_all(body.as_bytes())
}
