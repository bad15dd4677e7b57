//! A machine without a BMC, and the agent in its ramdisk.

use async_trait::async_trait;
use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use farrier_conductor::interfaces::{BootCapability, BootContext, BootInterface, Interface, InterfaceError};
use farrier_conductor::model::Node;
use farrier_media::KernelParameters;
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::task::AbortHandle;

/// Address of its network card.
pub const MAC: &str = "52:54:00:00:00:01";

/// Between two attempts or heartbeats of an agent.
const PAUSE: Duration = Duration::from_millis(10);

/// What the machine and its agents do, and did.
#[derive(Debug, Default)]
pub struct MachineState {
    /// What its agents were told, in order.
    pub commands: Vec<String>,
    /// How often its ramdisk was started.
    pub ramdisks: usize,
    /// How often its disk was started.
    pub disks: usize,
    /// It never starts again.
    pub is_lost: bool,
    /// Its agent takes the order to reboot, and stays.
    pub stays: bool,
    /// It restarts so quickly that its next agent has asked for its node before the order to reboot is answered.
    pub is_quick: bool,
    /// The order to reboot fails with this text.
    pub reboot_fails: Option<String>,
    /// The image cannot be written, with this text.
    pub write_fails: Option<String>,
    /// How often its agents were answered when they asked for their node.
    lookups: usize,
    /// Whether its network has the ramdisk for it.
    boots_ramdisk: bool,
    agent: Option<Running>,
}

/// An agent that runs: its calls, and its interface, which its machine takes along when it stops.
#[derive(Debug)]
struct Running(AbortHandle, Handle<SocketAddr>);

impl Running {
    fn end(self) {
        self.0.abort();
        self.1.shutdown();
    }
}

/// The machine. Clones are the same one.
#[derive(Clone)]
pub struct Machine {
    conductor: String,
    state: Arc<Mutex<MachineState>>,
}

impl Machine {
    /// One whose agents call this conductor.
    pub fn new(conductor: &str) -> Self {
        Self { conductor: conductor.to_owned(), state: Arc::default() }
    }

    pub fn state(&self) -> MutexGuard<'_, MachineState> {
        self.state.lock().unwrap()
    }

    /// Starts its ramdisk, as an operator does who stands before it.
    pub fn start_ramdisk(&self) {
        self.cut_off();
        let agent = Agent { machine: self.clone(), commands: Arc::default(), interface: Handle::new() };
        let interface = agent.interface.clone();
        let mut state = self.state();
        state.ramdisks += 1;
        state.agent = Some(Running(tokio::spawn(agent.run()).abort_handle(), interface));
    }

    /// Cuts its power.
    pub fn cut_off(&self) {
        if let Some(agent) = self.state().agent.take() {
            agent.end();
        }
    }

    /// Restarts on the order of its agent, whose answer leaves before the machine stops: if that is quick, after the
    /// next agent has asked for its node.
    async fn restart_on_order(&self) {
        let machine = self.clone();
        if !self.state().is_quick {
            tokio::spawn(async move {
                tokio::time::sleep(PAUSE).await;
                machine.restart();
            });
            return;
        }
        let before = self.state().lookups;
        let agent = self.state().agent.take();
        self.restart();
        while self.state().lookups == before {
            tokio::time::sleep(PAUSE).await;
        }
        tokio::spawn(async move {
            tokio::time::sleep(PAUSE).await;
            agent.map(Running::end)
        });
    }

    /// Restarts from its network, else from its disk.
    fn restart(&self) {
        self.cut_off();
        let mut state = self.state();
        match state.boots_ramdisk {
            _ if state.is_lost => {}
            true => {
                drop(state);
                self.start_ramdisk();
            }
            false => state.disks += 1,
        }
    }
}

impl Interface for Machine {}

#[async_trait]
impl BootInterface for Machine {
    fn capabilities(&self) -> &[BootCapability] {
        &[BootCapability::RamdiskBoot]
    }

    async fn prepare_ramdisk(
        &self,
        _boot: BootContext<'_>,
        _parameters: &KernelParameters,
    ) -> Result<(), InterfaceError> {
        self.state().boots_ramdisk = true;
        Ok(())
    }

    async fn clean_up_ramdisk(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        self.state().boots_ramdisk = false;
        Ok(())
    }

    async fn prepare_instance(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        self.state().boots_ramdisk = false;
        Ok(())
    }

    async fn clean_up_instance(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn validate_inspection(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }
}

/// The agent of one boot.
#[derive(Clone)]
struct Agent {
    machine: Machine,
    commands: Arc<Mutex<Vec<Value>>>,
    interface: Handle<SocketAddr>,
}

impl Agent {
    /// Looks its node up, serves its interface with a new certificate, and calls until its machine stops.
    async fn run(self) {
        let http = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
        let lookup = self.look_up(&http).await;
        let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let (certificate, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let heartbeat = json!({
            "callback_url": format!("https://{}", listener.local_addr().unwrap()),
            "agent_token": lookup["config"]["agent_token"],
            "agent_version": "0.1.0",
            "agent_verify_ca": certificate,
        });
        let tls = RustlsConfig::from_pem(certificate.into(), key.into()).await.unwrap();
        let routes = Router::new().route("/v1/commands/", get(list).post(execute)).with_state(self.clone());
        let server = axum_server::from_tcp_rustls(listener, tls).unwrap().handle(self.interface.clone());
        let server = server.serve(routes.into_make_service());
        let path = format!("v1/heartbeat/{}", lookup["node"]["uuid"].as_str().unwrap());
        let calls = async {
            loop {
                let call = self.to_conductor(http.post(self.at_conductor(&path))).json(&heartbeat);
                drop(call.send().await);
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::select! {
            _ = server => {}
            () = calls => {}
        }
    }

    /// Asks until it gets a token: one that is masked belongs to an agent that is no more.
    async fn look_up(&self, http: &reqwest::Client) -> Value {
        loop {
            let lookup = http.get(self.at_conductor(&format!("v1/lookup?addresses={MAC}")));
            let reply = self.to_conductor(lookup).send().await;
            self.machine.state().lookups += 1;
            if let Ok(reply) = reply
                && reply.status() == 200
                && let Ok(found) = reply.json::<Value>().await
            {
                assert_ne!(found["config"]["agent_token"], "******", "the token of an agent that is no more");
                return found;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn at_conductor(&self, path: &str) -> String {
        format!("{}/{path}", self.machine.conductor)
    }

    fn to_conductor(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        request.header("X-OpenStack-Ironic-API-Version", "1.68")
    }

    /// What a command produces, or why it fails.
    fn outcome(&self, name: &str, params: &Value) -> Result<Value, String> {
        let (extension, short) = name.split_once('.').unwrap();
        let state = self.machine.state();
        match short {
            _ if short.starts_with("get_") && short.ends_with("_steps") => Ok(json!({
                format!("{extension}_steps"): {"generic": [
                    {"interface": "deploy", "step": "erase_devices", "priority": 0},
                    {"interface": "deploy", "step": "flash", "priority": 0, "reboot_requested": true},
                    {"interface": "deploy", "step": "write_image", "priority": 0},
                ]},
                "hardware_manager_version": {"generic": "1"},
            })),
            _ if params["step"]["step"] == "write_image" && state.write_fails.is_some() => {
                Err(state.write_fails.clone().unwrap())
            }
            _ if short.starts_with("execute_") => Ok(json!({
                format!("{extension}_step"): params["step"], format!("{extension}_result"): {"result": "done"},
            })),
            "get_partition_uuids" => Ok(json!({"root uuid": "0x00000000"})),
            "run_image" => state.reboot_fails.clone().map_or(Ok(Value::Null), Err),
            _ => Ok(Value::Null),
        }
    }
}

async fn list(State(agent): State<Agent>) -> Json<Value> {
    Json(json!({"commands": *agent.commands.lock().unwrap()}))
}

async fn execute(State(agent): State<Agent>, Json(request): Json<Value>) -> Json<Value> {
    let (name, params) = (request["name"].as_str().unwrap(), &request["params"]);
    let outcome = agent.outcome(name, params);
    let restarts = name == "standby.run_image" && outcome.is_ok() && !agent.machine.state().stays;
    let step = params["step"]["step"].as_str().map(|step| format!(" {step}")).unwrap_or_default();
    agent.machine.state().commands.push(format!("{name}{step}"));
    let (status, result, error) = match outcome {
        Ok(result) => ("SUCCEEDED", result, Value::Null),
        Err(text) => {
            ("FAILED", Value::Null, json!({"type": "E", "code": 500, "message": "", "details": text}))
        }
    };
    let command = json!({
        "id": uuid::Uuid::new_v4(), "command_name": name.split_once('.').unwrap().1, "command_params": {},
        "command_status": status, "command_result": result, "command_error": error,
    });
    agent.commands.lock().unwrap().push(command.clone());
    if restarts {
        agent.machine.restart_on_order().await;
    }
    Json(command)
}
