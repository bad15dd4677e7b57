//! A conductor that knows nothing and agrees to everything, for tests that talk to the agent themselves.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// The node that every machine is.
pub const NODE: &str = "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11";
/// The token that its agent gets.
pub const TOKEN: &str = "q3X7yVt0bUo4mQ8J2nS6eRk1wZ5cLdF9hGpTaNxYvBE";

/// Something an agent sent.
#[derive(Debug)]
pub struct Sent {
    /// Path it was sent to.
    pub path: String,
    /// What was sent.
    pub body: Value,
}

/// The conductor; it answers until the process ends.
#[derive(Debug)]
pub struct StubConductor {
    address: SocketAddr,
    sent: Receiver<Sent>,
}

impl StubConductor {
    /// Listens on a free port of the loopback address.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub fn start() -> io::Result<Self> {
        Self::start_on(Ipv4Addr::LOCALHOST.into())
    }

    /// Listens on a free port of that address.
    ///
    /// # Errors
    ///
    /// There is no free port, or no such address.
    pub fn start_on(address: IpAddr) -> io::Result<Self> {
        Self::serve(address, json!({}))
    }

    /// Listens on a free port of the loopback address, and answers lookups with `settings` beside what it
    /// always says.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub fn start_with(settings: Value) -> io::Result<Self> {
        Self::serve(Ipv4Addr::LOCALHOST.into(), settings)
    }

    fn serve(address: IpAddr, settings: Value) -> io::Result<Self> {
        let settings = Arc::new(settings);
        let listener = TcpListener::bind((address, 0))?;
        let address = listener.local_addr()?;
        let (sender, sent) = channel();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (sender, settings) = (sender.clone(), Arc::clone(&settings));
                // A client that goes away has no need of an answer.
                thread::spawn(move || serve(connection, &settings, &sender));
            }
        });
        Ok(Self { address, sent })
    }

    /// URL of the API for a machine on QEMU's user network.
    pub fn guest_url(&self) -> String {
        self.url_at("10.0.2.2")
    }

    /// URL of the API for a machine that knows this one as `host`.
    pub fn url_at(&self, host: &str) -> String {
        format!("http://{host}:{}", self.address.port())
    }

    /// The next body that was sent to a path which begins so; nothing in `limit`.
    pub fn wait_for(&self, path: &str, limit: Duration) -> Option<Value> {
        let is_wanted = |sent: &Sent| sent.path.starts_with(path);
        std::iter::from_fn(|| self.sent.recv_timeout(limit).ok()).find(is_wanted).map(|sent| sent.body)
    }
}

fn serve(connection: TcpStream, settings: &Value, sender: &Sender<Sent>) -> io::Result<()> {
    let mut reader = BufReader::new(&connection);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (method, path) =
        (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let mut body = vec![0; content_length(&mut reader)?];
    reader.read_exact(&mut body)?;
    let (status, answer) = answer(&path, settings);
    let answer = if answer.is_null() { String::new() } else { answer.to_string() };
    write!(
        &connection,
        "HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
        answer.len()
    )?;
    if method == "POST" {
        let body = serde_json::from_slice(&body).unwrap_or_default();
        // The test may have seen enough.
        sender.send(Sent { path, body }).ok();
    }
    Ok(())
}

fn content_length(reader: &mut impl BufRead) -> io::Result<usize> {
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Ok(headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or_default())
}

fn answer(path: &str, settings: &Value) -> (u16, Value) {
    match path.split(['?', '/']).filter(|part| !part.is_empty()).nth(1) {
        None => {
            let version = json!({"id": "v1", "links": [], "status": "CURRENT", "min_version": "1.1", "version": "1.115"});
            (200, json!({"name": "stub", "default_version": version, "versions": [version]}))
        }
        Some("lookup") => {
            let node =
                json!({"uuid": NODE, "properties": {}, "instance_info": {}, "driver_internal_info": {}});
            let mut config =
                json!({"heartbeat_timeout": 300, "agent_token": TOKEN, "agent_token_required": true});
            for (name, value) in settings.as_object().into_iter().flatten() {
                config[name] = value.clone();
            }
            (200, json!({"node": node, "config": config}))
        }
        Some("continue_inspection") => (202, json!({"uuid": NODE})),
        Some(_) => (202, Value::Null),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_kept_and_answered() {
        let conductor = StubConductor::start().unwrap();
        let mut stream = TcpStream::connect(conductor.address).unwrap();
        stream
            .write_all(b"POST /v1/continue_inspection HTTP/1.1\r\nContent-Length: 7\r\n\r\n{\"a\":1}")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 202") && answer.contains(NODE), "{answer}");
        let sent = conductor.wait_for("/v1/continue_inspection", Duration::from_secs(10));
        assert_eq!(sent, Some(json!({"a": 1})));
    }
}
