//! A stand-in for Keystone with two users, who may operate machines: for clients that know no other way to authenticate.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A user of the project, in Keystone's default domain.
pub const USER: &str = "admin";
/// A user of the whole system.
pub const SYSTEM_USER: &str = "system-admin";
/// The password of both.
pub const PASSWORD: &str = "oats+hay=horse";
/// The project whose roles count for the conductor too.
pub const PROJECT: &str = "baremetal";
/// Where all services are.
pub const REGION: &str = "RegionOne";

/// Roles in the project, and of the whole system.
const ROLES: [&str; 2] = ["admin", "baremetal_admin"];

/// The service; it answers until the process ends.
#[derive(Debug)]
pub struct Keystone {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// URL of the conductor in the catalogue.
    baremetal: String,
    /// What Keystone reports of each token that was issued.
    tokens: BTreeMap<String, Value>,
}

impl Keystone {
    /// Listens on a free port of the loopback address.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (address, state) = (listener.local_addr()?, Arc::<Mutex<State>>::default());
        let answering = Arc::clone(&state);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let state = Arc::clone(&answering);
                // A client that goes away needs no answer.
                thread::spawn(move || answer(&connection, &state).ok());
            }
        });
        Ok(Self { address, state })
    }

    /// The URL that the conductor and clients are configured with.
    pub fn url(&self) -> String {
        format!("http://{}/v3", self.address)
    }

    /// Tokens name this URL as that of the conductor from now on.
    pub fn catalog(&self, baremetal: String) {
        self.state.lock().unwrap().baremetal = baremetal;
    }
}

/// A request, as far as Keystone reads it.
struct Request {
    line: String,
    headers: BTreeMap<String, String>,
    body: Value,
}

impl Request {
    fn read(connection: &TcpStream) -> io::Result<Self> {
        let mut reader = BufReader::new(connection);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut headers = BTreeMap::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim_end().split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.unwrap_or_default()];
        reader.read_exact(&mut body)?;
        Ok(Self { line, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
    }
}

fn answer(mut connection: &TcpStream, state: &Mutex<State>) -> io::Result<()> {
    let request = Request::read(connection)?;
    let (status, token, body) = state.lock().unwrap().answer(&request);
    let body = body.to_string();
    let token = token.map(|token| format!("X-Subject-Token: {token}\r\n")).unwrap_or_default();
    write!(
        connection,
        "HTTP/1.1 {status} Answered\r\nContent-Type: application/json\r\nConnection: close\r\n{token}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

impl State {
    /// Status, token and body of the answer.
    fn answer(&mut self, request: &Request) -> (u16, Option<String>, Value) {
        let header = |name| request.headers.get(name).cloned().unwrap_or_default();
        let refused = |status: u16| (status, None, json!({"error": {"code": status, "message": "refused"}}));
        match request.line.split([' ', '?']).take(2).collect::<Vec<_>>().as_slice() {
            ["POST", "/v3/auth/tokens"] => {
                let user = &request.body["auth"]["identity"]["password"]["user"];
                let name = user["name"].as_str().unwrap_or_default();
                let scope = request.body["auth"]["scope"].get("system");
                let known = if scope.is_some() { SYSTEM_USER } else { USER };
                if name != known || user["password"] != PASSWORD {
                    return refused(401);
                }
                let body = self.token(name, scope);
                let token = format!("gAAAAA-{}", self.tokens.len());
                self.tokens.insert(token.clone(), body.clone());
                (201, Some(token), body)
            }
            ["GET", "/v3/auth/tokens"] if !self.tokens.contains_key(&header("x-auth-token")) => refused(401),
            ["GET", "/v3/auth/tokens"] => {
                let subject = header("x-subject-token");
                match self.tokens.get(&subject) {
                    Some(body) => (200, Some(subject), body.clone()),
                    None => refused(404),
                }
            }
            _ => refused(404),
        }
    }

    /// What is reported of the token of a user, for the project or for a scope of the system.
    fn token(&self, user: &str, scope: Option<&Value>) -> Value {
        let domain = json!({"id": "default", "name": "Default"});
        let roles = ROLES.map(|name| json!({"id": name, "name": name}));
        let endpoints = ["public", "internal", "admin"].map(|interface| {
            json!({"id": interface, "interface": interface, "region": REGION, "region_id": REGION,
                "url": self.baremetal})
        });
        let catalog = json!([{"id": "1", "type": "baremetal", "name": "ironic", "endpoints": endpoints}]);
        let mut token = json!({
            "methods": ["password"],
            "user": {"id": user, "name": user, "domain": domain},
            "roles": roles,
            "audit_ids": ["1"],
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "expires_at": "2999-01-01T00:00:00.000000Z",
            "catalog": catalog,
        });
        match scope {
            Some(system) => token["system"] = system.clone(),
            None => token["project"] = json!({"id": "1", "name": PROJECT, "domain": domain}),
        }
        json!({"token": token})
    }
}
