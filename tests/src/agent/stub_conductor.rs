//! A conductor that knows nothing and agrees to everything, for tests that talk to the agent themselves. It may be
//! told by which card it knows its node, as real ones are.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

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
    /// When it came.
    pub at: Instant,
}

/// By what a conductor answers.
#[derive(Debug, Default)]
struct Knowledge {
    /// Settings for agents, beside those that it always tells.
    settings: Value,
    /// The enrolled card; without one, whoever asks is the node.
    card: Option<String>,
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
        Self::serve(address, Knowledge::default())
    }

    /// Listens on a free port of the loopback address, and answers lookups with `settings` beside what it
    /// always says.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub fn start_with(settings: Value) -> io::Result<Self> {
        Self::serve(Ipv4Addr::LOCALHOST.into(), Knowledge { settings, card: None })
    }

    /// Listens on a free port of the loopback address, and knows its node by the card with this address alone.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub fn start_enrolled(card: &str) -> io::Result<Self> {
        Self::serve(
            Ipv4Addr::LOCALHOST.into(),
            Knowledge { card: Some(card.to_owned()), ..Knowledge::default() },
        )
    }

    fn serve(address: IpAddr, knowledge: Knowledge) -> io::Result<Self> {
        let knowledge = Arc::new(knowledge);
        let listener = TcpListener::bind((address, 0))?;
        let address = listener.local_addr()?;
        let (sender, sent) = channel();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (sender, knowledge) = (sender.clone(), Arc::clone(&knowledge));
                // A client that goes away has no need of an answer.
                thread::spawn(move || serve(connection, &knowledge, &sender));
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

    /// What has come since anything was asked for last.
    pub fn news(&self) -> Vec<Sent> {
        self.sent.try_iter().collect()
    }
}

fn serve(connection: TcpStream, knowledge: &Knowledge, sender: &Sender<Sent>) -> io::Result<()> {
    let mut reader = BufReader::new(&connection);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (method, path) =
        (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let mut body = vec![0; content_length(&mut reader)?];
    reader.read_exact(&mut body)?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let (status, answer) = knowledge.answer(&path, &body);
    let answer = if answer.is_null() { String::new() } else { answer.to_string() };
    write!(
        &connection,
        "HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
        answer.len()
    )?;
    if method == "POST" {
        // The test may have seen enough.
        sender.send(Sent { path, body, at: Instant::now() }).ok();
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

impl Knowledge {
    fn answer(&self, path: &str, body: &Value) -> (u16, Value) {
        match path.split(['?', '/']).filter(|part| !part.is_empty()).nth(1) {
            None => {
                let version = json!({"id": "v1", "links": [], "status": "CURRENT", "min_version": "1.1", "version": "1.115"});
                (200, json!({"name": "stub", "default_version": version, "versions": [version]}))
            }
            Some("lookup") if self.is_asked_for(path) => {
                let node =
                    json!({"uuid": NODE, "properties": {}, "instance_info": {}, "driver_internal_info": {}});
                let mut config =
                    json!({"heartbeat_timeout": 300, "agent_token": TOKEN, "agent_token_required": true});
                for (name, value) in self.settings.as_object().into_iter().flatten() {
                    config[name] = value.clone();
                }
                (200, json!({"node": node, "config": config}))
            }
            Some("continue_inspection") if self.is_told_of(body) => (202, json!({"uuid": NODE})),
            Some("lookup" | "continue_inspection") => {
                (404, json!({"error_message": {"faultstring": "Node could not be found."}}))
            }
            Some(_) => (202, Value::Null),
        }
    }

    /// Whether a lookup names the node, or its card.
    fn is_asked_for(&self, path: &str) -> bool {
        let asked = path.replace("%3A", ":");
        self.card.as_ref().is_none_or(|card| asked.contains(card) || asked.contains(NODE))
    }

    /// Whether the data of an inspection has the card.
    fn is_told_of(&self, data: &Value) -> bool {
        let interfaces = data["inventory"]["interfaces"].as_array();
        let has = |card: &String| interfaces.into_iter().flatten().any(|one| one["mac_address"] == **card);
        self.card.as_ref().is_none_or(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(conductor: &StubConductor, request: &str) -> String {
        let mut stream = TcpStream::connect(conductor.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn what_is_sent_is_kept_and_answered() {
        let conductor = StubConductor::start().unwrap();
        let answer =
            ask(&conductor, "POST /v1/continue_inspection HTTP/1.1\r\nContent-Length: 7\r\n\r\n{\"a\":1}");
        assert!(answer.starts_with("HTTP/1.1 202") && answer.contains(NODE), "{answer}");
        let sent = conductor.wait_for("/v1/continue_inspection", Duration::from_secs(10));
        assert_eq!(sent, Some(json!({"a": 1})));
    }

    #[test]
    fn x30_only_the_enrolled_card_is_known() {
        let conductor = StubConductor::start_enrolled("52:54:00:00:00:03").unwrap();
        let answer = |request: &str| ask(&conductor, request).split(' ').nth(1).unwrap().to_owned();
        for (query, status) in [
            ("addresses=52%3A54%3A00%3A00%3A00%3A01", "404"),
            ("addresses=52%3A54%3A00%3A00%3A00%3A01%2C52%3A54%3A00%3A00%3A00%3A03", "200"),
            ("addresses=&node_uuid=1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11", "200"),
        ] {
            assert_eq!(answer(&format!("GET /v1/lookup?{query} HTTP/1.1\r\n\r\n")), status, "{query}");
        }
        for (card, status) in [("52:54:00:00:00:01", "404"), ("52:54:00:00:00:03", "202")] {
            let body = json!({"inventory": {"interfaces": [{"mac_address": card}]}}).to_string();
            let head = format!("Content-Length: {}\r\n\r\n", body.len());
            let request = format!("POST /v1/continue_inspection HTTP/1.1\r\n{head}{body}");
            assert_eq!(answer(&request), status, "{card}");
        }
    }
}
