//! The whole interface behind its real listener, with commands made for tests beside the real ones.

use super::limits::Limits;
use super::{routes, server};
use crate::agent::Agent;
use crate::commands::allowance::Allowance;
use crate::commands::{Command, JsonType, Kind, Parameter};
use crate::deployment::config_drive::load;
use crate::identity::tls::{self, Identity};
use crate::network::http;
use crate::settings::options::{Curve, Options, TlsVersion};
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_tests::agent::hostility;
use reqwest::header::HeaderMap;
use reqwest::{Certificate, ClientBuilder, Method};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// The agent's token.
pub const TOKEN: &str = "q3X7yVt0bUo4mQ8J2nS6eRk1wZ5cLdF9hGpTaNxYvBE";
/// Waiting longer than this for anything is a failure.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// What `test.hold` and `test.hold_sync` of each agent wait for.
static HELD: Mutex<BTreeMap<PathBuf, Receiver<()>>> = Mutex::new(BTreeMap::new());

const TEXT: Parameter = Parameter::required("text", &[JsonType::String, JsonType::Null], "");

const COMMANDS: &[Command] = &[
    Command {
        parameters: &[TEXT],
        validate: Some(|params| match params["text"] {
            Value::Null => {
                Err(CommandError::new(ErrorKind::InvalidCommandParamsError, "text must not be null"))
            }
            _ => Ok(()),
        }),
        ..command("echo", Kind::Sync, |_, params| Ok(params["text"].clone()))
    },
    command("say", Kind::Async, |_, _| Ok(json!("hello"))),
    command("count", Kind::Sync, |_, _| Ok(json!([1, 2]))),
    command("fail", Kind::Async, |_, _| {
        Err(CommandError::new(ErrorKind::ImageWriteError, "/dev/vda: no space left"))
    }),
    command("fail_sync", Kind::Sync, |_, _| Err(CommandError::new(ErrorKind::DeviceNotFound, "no disk"))),
    command("mismatch", Kind::Async, |_, _| Err(CommandError::new(ErrorKind::VersionMismatch, "1 and 2"))),
    command("defect", Kind::Async, |_, _| panic!("a defect of a command")),
    Command {
        validate: Some(|_| panic!("a defect of a validator")),
        ..command("broken", Kind::Sync, |_, _| Ok(Value::Null))
    },
    command("hold", Kind::Async, hold),
    Command { parameters: &[TEXT], ..command("hold_text", Kind::Async, hold) },
    Command { parameters: &[TEXT], ..command("config_drive", Kind::Async, config_drive) },
    command("hold_sync", Kind::Sync, hold),
];

const fn command(name: &'static str, kind: Kind, run: crate::commands::Run) -> Command {
    Command { name, help: "", kind, parameters: &[], validate: None, run }
}

fn hold(agent: &Arc<Agent>, _: &crate::commands::Params) -> Result<Value, CommandError> {
    let held = HELD.lock().unwrap().remove(&agent.root).unwrap();
    held.recv_timeout(DEADLINE).unwrap();
    Ok(json!("released"))
}

/// Takes a config drive, and tells how large it is.
fn config_drive(agent: &Arc<Agent>, params: &crate::commands::Params) -> Result<Value, CommandError> {
    let drive = load(agent, params["text"].as_str().unwrap())?;
    Ok(json!(drive.size().to_string()))
}

fn find(extension: &str, command: &str) -> Result<&'static Command, CommandError> {
    match COMMANDS.iter().find(|one| extension == "test" && one.name == command) {
        Some(command) => Ok(command),
        None => crate::extensions::find(extension, command),
    }
}

/// A served agent; its files lie in `root`.
pub struct Server {
    pub agent: Arc<Agent>,
    pub address: SocketAddr,
    pub client: reqwest::Client,
    pub root: tempfile::TempDir,
    pub ended: tokio::task::JoinHandle<std::io::Result<()>>,
    pub certificate: String,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Server {
    pub fn start() -> Self {
        Self::start_with(Limits::default(), Some(TOKEN))
    }

    pub fn start_with(limits: Limits, token: Option<&str>) -> Self {
        Self::start_within(limits, Allowance::of_machine(), token)
    }

    pub fn start_within(limits: Limits, allowance: Arc<Allowance>, token: Option<&str>) -> Self {
        let agent_token = token.map(str::to_owned);
        Self::start_under(limits, allowance, Options { agent_token, ..Options::default() })
    }

    /// One with these options, but for how it listens.
    pub fn start_under(limits: Limits, allowance: Arc<Allowance>, options: Options) -> Self {
        http::install_tls_provider();
        let root = tempfile::tempdir().unwrap();
        let options = Options {
            listen_port: 0,
            listen_host: Some("127.0.0.1".to_owned()),
            tls_min_version: TlsVersion::V1_3,
            ..options
        };
        let agent = Agent::new(options, root.path(), tokio::runtime::Handle::current()).unwrap();
        let mut agent = Arc::into_inner(agent).unwrap();
        agent.allowance = allowance;
        let agent = Arc::new(agent);
        let listener = server::listen(&agent.options).unwrap();
        let address = listener.local_addr().unwrap();
        let identity = Identity::generate("agent", address.ip(), Duration::ZERO, Curve::P256).unwrap();
        let certificate = identity.certificate_pem.clone();
        let tls = Some(tls::listener::from_identity(&identity, &agent.options).unwrap());
        let router = routes::router_within(limits, Arc::clone(&agent), find);
        let stopped = Arc::clone(&agent);
        let until_stopped = async move {
            stopped.until_stopped().await;
        };
        let served =
            server::serve_within(limits, listener, tls, router, Arc::clone(&agent.allowance), until_stopped);
        let ended = tokio::spawn(served);
        let client = trusting(&certificate).build().unwrap();
        Self { agent, address, client, root, ended, certificate }
    }

    /// A client on another address of the loopback network.
    pub fn client_at(&self, address: [u8; 4]) -> reqwest::Client {
        trusting(&self.certificate).local_address(IpAddr::from(Ipv4Addr::from(address))).build().unwrap()
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// One request, made of parts that a table holds.
    pub async fn ask(&self, method: &str, path: &str, body: impl Into<reqwest::Body>) -> Reply {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let response = self.client.request(method, self.url(path)).body(body).send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Reply { status, headers, body: response.json().await.unwrap_or_default() }
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, "").await
    }

    /// Submits a command with the token.
    pub async fn command(&self, name: &str, params: Value, wait: &str) -> Reply {
        let path = format!("/v1/commands/?wait={wait}&agent_token={TOKEN}");
        self.ask("POST", &path, json!({"name": name, "params": params}).to_string()).await
    }

    /// Waits until a first command was accepted.
    pub async fn wait_until_running(&self) {
        let deadline = Instant::now() + DEADLINE;
        let path = format!("/v1/commands/?agent_token={TOKEN}");
        while self.get(&path).await.body["commands"].as_array().is_none_or(Vec::is_empty) {
            assert!(Instant::now() < deadline);
        }
    }

    /// A connection on which a test may say what it likes.
    pub async fn connect(&self) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::from(self.address.ip());
        hostility::trusting(&self.certificate).connect(name, stream).await.unwrap()
    }

    /// What the next `test.hold` waits for.
    pub fn hold(&self) -> Sender<()> {
        let (sender, receiver) = channel();
        HELD.lock().unwrap().insert(self.agent.root.clone(), receiver);
        sender
    }
}

/// A client of the server that has this certificate.
pub fn trusting(certificate: &str) -> ClientBuilder {
    let authority = Certificate::from_pem(certificate.as_bytes()).unwrap();
    reqwest::Client::builder().tls_certs_only([authority]).redirect(reqwest::redirect::Policy::none())
}

/// A value without its content: every leaf is the name of its JSON type; a list is known by its first
/// entry.
pub fn shape(value: &Value) -> Value {
    match value {
        Value::Null => json!("null"),
        Value::Bool(_) => json!("boolean"),
        Value::Number(number) if number.is_f64() => json!("float"),
        Value::Number(_) => json!("integer"),
        Value::String(_) => json!("string"),
        Value::Array(entries) => entries.iter().take(1).map(shape).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect(),
    }
}
