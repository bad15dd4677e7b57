//! An agent that speaks the contract and writes nothing.

#[path = "agent/signing.rs"]
pub mod signing;

use crate::machine::FakeMachine;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use axum_server::tls_rustls::RustlsConfig;
use farrier_protocol::command::{CommandList, CommandRequest, CommandResult, CommandStatus};
use farrier_protocol::error::{CommandError, ErrorKind, Fault};
use farrier_protocol::heartbeat::Heartbeat;
use farrier_protocol::image_info::ImageInfo;
use farrier_protocol::progress::{Phase, Progress};
use serde_json::{Value, json};
use signing::{Key, Proof};
use std::collections::HashMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;

/// How long the fake commands take.
const WORK: Duration = Duration::from_millis(60);
/// Time in which a machine is on after its agent.
pub const FLUSH: Duration = Duration::from_millis(1200);

/// The command that executes the steps of a deployment, as agents list it.
const DEPLOY_STEP: &str = "execute_deploy_step";

/// How long a step takes whose answer gets lost: longer than any request.
const LONG_WORK: Duration = Duration::from_millis(2500);

/// What an agent does that is out of the ordinary.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// It never calls the conductor.
    pub silent: bool,
    /// It calls, and never answers commands.
    pub deaf: bool,
    /// Whoever asks it is never answered again once it has taken a step.
    pub vanishes: bool,
    /// Steps fail with this text.
    pub write_fails: Option<String>,
    /// The steps that it offers, of any kind; else those that erase, for cleaning.
    pub offers: Option<Vec<Value>>,
    /// What its steps produce.
    pub produces: Value,
    /// What its erase steps prove.
    pub proof: Proof,
    /// Its steps do not end before this ends.
    pub blocked: bool,
    /// How often it says that its hardware managers have changed when a step is sent, and whether they have.
    pub mismatches: u32,
    pub mismatches_in_vain: bool,
    /// Version of its hardware manager, less one.
    pub version: u32,
    /// `install_bootloader` fails with this text.
    pub bootloader_fails: Option<String>,
    /// It forgets its commands while it writes, as after a restart.
    pub restarts: bool,
    /// It answers everything with 100 MiB.
    pub floods: bool,
    /// To how many requests of commands it answers that it cannot serve.
    pub sick: u32,
    /// How often it is busy with something else when a step is sent.
    pub busy: u32,
    /// It answers the first POST of a step with a cut connection, after it took the step.
    pub loses_answer: bool,
    /// How often the BMC says that the machine is off, and errs.
    pub misreads: u32,
    /// The BMC does not tell whether the machine is on once a step has begun.
    pub bmc_hangs: bool,
    /// It says of every step that another one is done.
    pub lies: bool,
    /// It takes its time for every answer.
    pub slow: Option<Duration>,
    /// The machine's driver panics once when it is powered on.
    pub panics: bool,
    /// It calls once.
    pub calls_once: bool,
    /// It keeps whoever asks for its commands waiting once a step has ended, and how many it has kept so.
    pub holds: bool,
    pub held: u32,
    /// It does nothing once it has posted its inventory.
    pub hesitates: bool,
    /// It offers nothing that Ironic's contract does not have.
    pub offers_no_progress: bool,
    /// How often its progress was asked for.
    pub progress_asked: u32,
    /// How often its commands were listed while it ran a step.
    pub listed_at_work: u32,
    /// The hash of the password by which the rescue system that runs can be entered.
    pub rescue_password: Option<String>,
    /// `finalize_rescue` fails with this text.
    pub rescue_fails: Option<String>,
    /// How often it takes the password of a rescue and ends before it can say so.
    pub loses_rescue_answers: u32,
    /// Whether it exports its disk, and with which text it fails when it is to begin or end that.
    pub exports: bool,
    pub export_fails: Option<String>,
    /// What it sends as its logs, where it can.
    pub logs: Option<String>,
    /// It ignores `power_off`.
    pub stays_on: bool,
    /// It ends before it can say that it goes off, and its machine is on for a while after that.
    pub ends_before_its_machine: bool,
    /// Nobody but an operator switches its machine or sees its power, and it ends before it can say that it goes off.
    pub is_switched_by_hand: bool,
    /// What it posts of its machine; else [`report`].
    pub report: Option<Value>,
    /// How each of its posts was answered.
    pub posted: Vec<u16>,
    /// Steps that the BMC was given, and how often it was asked whether one has ended, and whether it then fails.
    pub driven: Vec<String>,
    pub polls: u32,
    pub bmc_fails: bool,
    /// Names and parameters of the commands it accepted.
    pub accepted: Vec<(String, Value)>,
    /// The token it goes by, and what the conductor told it when it looked its node up.
    pub token: Option<String>,
    pub looked_up: Option<String>,
    /// Whether nobody but its machine gets the kernel parameters of a boot.
    pub has_own_media: bool,
}

impl Script {
    fn versions(&self) -> Value {
        json!({"generic_hardware_manager": (self.version + 1).to_string()})
    }

    /// The steps that were begun, as `kind interface.step`.
    pub fn steps(&self) -> Vec<String> {
        let executed = self.accepted.iter().filter(|(name, _)| is_execute(name));
        executed
            .map(|(name, params)| {
                let (kind, step) = (name.split_once('.').unwrap().0, &params["step"]);
                format!("{kind} {}.{}", step["interface"].as_str().unwrap(), step["step"].as_str().unwrap())
            })
            .collect()
    }
}

/// What an agent posts of a machine with two network cards, the first of which has this address.
pub fn report(address: &str) -> Value {
    json!({
        "inventory": {
            "interfaces": [
                {"name": "eth0", "mac_address": address, "ipv4_address": "192.0.2.20", "has_carrier": true},
                {"name": "eth1", "mac_address": SECOND_CARD, "ipv4_address": "192.0.2.21", "has_carrier": true},
            ],
            "cpu": {"architecture": "x86_64", "count": 2, "model_name": "Example", "flags": ["vmx"]},
            "disks": [{"name": "/dev/vda", "size": 10_u64 << 30, "rotational": false, "serial": "A1"}],
            "memory": {"total": 2_u64 << 30, "physical_mb": 2048},
            "bmc_address": null, "bmc_v6address": "::/0",
            "boot": {"current_boot_mode": "uefi", "pxe_interface": null},
        },
        "boot_interface": null, "error": null, "logs": "H4sIAAAA",
    })
}

/// Address of the second network card of a machine.
pub const SECOND_CARD: &str = "52:54:00:00:00:a2";

/// A running agent.
#[derive(Clone)]
pub struct Agent {
    machine: FakeMachine,
    conductor: Option<String>,
    address: String,
    /// What its kernel parameters say of its token.
    token: Option<String>,
    commands: Arc<Mutex<Vec<CommandResult>>>,
    /// Told each time somebody asks for the progress.
    asked: Arc<Notify>,
    /// Told when it has nothing to do any more.
    ends: Arc<Notify>,
    key: Arc<OnceLock<Key>>,
}

type Answer = Result<Json<Value>, (StatusCode, Json<Fault>)>;

impl Agent {
    pub fn new(machine: FakeMachine, conductor: Option<String>, address: &str) -> Self {
        Self {
            machine,
            conductor,
            address: address.to_owned(),
            token: None,
            commands: Arc::default(),
            asked: Arc::default(),
            ends: Arc::default(),
            key: Arc::default(),
        }
    }

    /// Has its token among its kernel parameters.
    pub fn with_token(self, token: Option<String>) -> Self {
        Self { token, ..self }
    }

    /// Posts what it sees of its machine where it is told to, and runs where it is told of a conductor.
    pub async fn live(self, callback: Option<String>) {
        if self.script().silent {
            return;
        }
        if let Some(url) = callback {
            self.post(&url).await;
        }
        while self.script().hesitates {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        if self.conductor.is_some() {
            self.run().await;
        }
    }

    /// Posts until it is taken or refused; a conductor that is gone may come again.
    async fn post(&self, url: &str) {
        let http = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
        loop {
            let report = self.script().report.unwrap_or_else(|| report(&self.address));
            if let Ok(reply) = http.post(url).json(&report).send().await {
                let status = reply.status().as_u16();
                self.change(|script| script.posted.push(status));
                if status != 409 && status < 500 {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Looks the node up, serves its interface with a new certificate, and calls until it is stopped.
    async fn run(self) {
        let http = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
        let lookup = self.look_up(&http).await;
        let told = lookup.pointer("/config/agent_token").and_then(Value::as_str).map(str::to_owned);
        self.change(|script| {
            script.looked_up.clone_from(&told);
            script.token = self.token.clone().or(told);
        });
        let node = lookup.pointer("/node/uuid").and_then(Value::as_str).unwrap().to_owned();

        let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let (certificate, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
        self.key.get_or_init(|| Key::new(certified.cert.der(), certified.signing_key.serialize_der()));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let heartbeat = Heartbeat {
            callback_url: format!("https://{}", listener.local_addr().unwrap()),
            agent_token: self.script().token,
            agent_version: Some("0.1.0".into()),
            agent_verify_ca: Some(certificate.clone()),
            ..Heartbeat::default()
        };
        let tls = RustlsConfig::from_pem(certificate.into(), key.into()).await.unwrap();
        let routes = Router::new()
            .route("/v1/commands/", get(list).post(execute))
            .route("/v1/", get(resources))
            .route("/v1/progress", get(progress))
            .with_state(self.clone());
        let routes = match self.script().floods {
            true => Router::new().fallback(async || vec![b' '; 100 << 20]),
            false => routes,
        };
        let handle = axum_server::Handle::new();
        let server = axum_server::from_tcp_rustls(listener, tls).unwrap().handle(handle.clone());
        let server = server.serve(routes.into_make_service());
        tokio::select! {
            _ = server => {}
            () = self.call(&http, &node, &heartbeat) => {}
            () = self.ends.notified() => handle.shutdown(),
        }
    }

    async fn look_up(&self, http: &reqwest::Client) -> Value {
        loop {
            let reply = http
                .get(format!("{}/v1/lookup?addresses={}", self.conductor(), self.address))
                .header("X-OpenStack-Ironic-API-Version", "1.62")
                .send()
                .await;
            // A conductor that is gone may come again.
            if let Ok(reply) = reply
                && reply.status() == 200
                && let Ok(found) = reply.json().await
            {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn call(&self, http: &reqwest::Client, node: &str, heartbeat: &Heartbeat) {
        loop {
            let reply = http
                .post(format!("{}/v1/heartbeat/{node}", self.conductor()))
                .header("X-OpenStack-Ironic-API-Version", "1.68")
                .json(heartbeat)
                .send()
                .await;
            // A conductor that is gone ends the test, not the agent.
            if reply.is_ok_and(|reply| reply.status() == 202) && self.script().calls_once {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Never returns for an agent that has vanished.
    async fn until_vanished(&self) {
        let has_step =
            self.commands.lock().unwrap().iter().any(|command| command.command_name == DEPLOY_STEP);
        if has_step && self.script().vanishes {
            std::future::pending::<()>().await;
        }
    }

    fn conductor(&self) -> &str {
        self.conductor.as_deref().unwrap()
    }

    fn script(&self) -> Script {
        self.machine.script.lock().unwrap().clone()
    }

    fn change<T>(&self, act: impl FnOnce(&mut Script) -> T) -> T {
        act(&mut self.machine.script.lock().unwrap())
    }

    fn start(&self, result: &CommandResult) {
        self.commands.lock().unwrap().push(result.clone());
    }

    fn finish(&self, id: uuid::Uuid, outcome: Result<Value, String>) {
        self.end(id, |command| match outcome {
            Ok(result) => {
                command.command_status = CommandStatus::Succeeded;
                command.command_result = Some(result);
            }
            Err(text) => {
                command.command_status = CommandStatus::Failed;
                command.command_error = Some(CommandError::new(ErrorKind::ImageWriteError, text));
            }
        });
    }

    fn end(&self, id: uuid::Uuid, end: impl FnOnce(&mut CommandResult)) {
        if let Some(command) = self.commands.lock().unwrap().iter_mut().find(|command| command.id == id) {
            end(command);
        }
    }

    /// Ends a command after a while; a step not before its progress was asked for.
    fn run_later(&self, result: &CommandResult, outcome: Result<Value, String>) {
        let (agent, id) = (self.clone(), result.id);
        let (is_step, is_write) = (is_execute(&result.command_name), result.command_name == DEPLOY_STEP);
        let work = if self.script().loses_answer { LONG_WORK } else { WORK };
        tokio::spawn(async move {
            if is_write && !agent.script().offers_no_progress {
                agent.asked.notified().await;
            }
            tokio::time::sleep(work).await;
            while is_step && agent.script().blocked {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            if agent.change(|script| std::mem::take(&mut script.restarts)) {
                agent.commands.lock().unwrap().clear();
            }
            agent.finish(id, outcome);
        });
    }

    fn run_command(&self, request: &CommandRequest, result: &CommandResult) {
        let script = self.script();
        match request.name.as_str() {
            name if name.contains(".get_") && name.ends_with("_steps") => {
                let kind = name.split_once('.').unwrap().0;
                let erasing = json!([
                    {"interface": "deploy", "step": "erase_devices", "priority": 10, "abortable": true},
                    {"interface": "deploy", "step": "erase_devices_metadata", "priority": 99},
                ]);
                let usual = if kind == "deploy" { Vec::new() } else { erasing.as_array().unwrap().clone() };
                let mut steps = script.offers.clone().unwrap_or(usual);
                if kind == "deploy" {
                    steps.push(json!({"interface": "deploy", "step": "write_image", "priority": 0}));
                }
                let listing = json!({
                    format!("{kind}_steps"): {"GenericHardwareManager": steps},
                    "hardware_manager_version": script.versions(),
                });
                self.finish(result.id, Ok(listing));
            }
            name if is_execute(name) => {
                let (kind, step) = (name.split_once('.').unwrap().0, &request.params["step"]);
                if step["step"] == "write_image" {
                    ImageInfo::from_params(&step["args"]["image_info"]).unwrap();
                }
                if script.mismatches > 0 {
                    self.change(|script| {
                        script.mismatches -= 1;
                        script.version += u32::from(!script.mismatches_in_vain);
                    });
                    return self.end(result.id, |command| {
                        command.command_status = CommandStatus::CleanVersionMismatch;
                    });
                }
                assert_eq!(request.params[&format!("{kind}_version")], script.versions());
                let report = json!({"bytes_written": 100, "bytes_zeroed": 28});
                let other = json!({"interface": "raid", "step": "apply_configuration"});
                let echo = if script.lies { &other } else { step };
                let name = step["step"].as_str().unwrap();
                let proves = name.starts_with("erase_devices") && !script.proof.disks.is_empty();
                let node = request.params["node"]["uuid"].as_str().unwrap_or_default();
                let produced = match script.produces.clone() {
                    _ if proves => signing::erased(&script.proof, self.key.get().unwrap(), node, name),
                    Value::Null => json!({"result": "prepare_image: image (x) written", "report": report}),
                    produced => produced,
                };
                let ended = json!({format!("{kind}_step"): echo, format!("{kind}_result"): produced});
                self.run_later(result, script.write_fails.clone().map_or(Ok(ended), Err));
            }
            "standby.get_partition_uuids" => {
                let is_partition = self.change(|script| {
                    let write = script.accepted.iter().find(|(name, _)| name.ends_with(DEPLOY_STEP));
                    write.is_some_and(|(_, params)| {
                        params["step"]["args"]["image_info"]["image_type"] == "partition"
                    })
                });
                let uuids = match is_partition {
                    true => {
                        json!({"root uuid": "ROOT", "efi system partition uuid": "ESP", "partitions": {}})
                    }
                    false => json!({"root uuid": "0x00000000"}),
                };
                self.finish(result.id, Ok(uuids));
            }
            "standby.prepare_image" => {
                self.run_later(result, script.write_fails.clone().map_or(Ok(Value::Null), Err));
            }
            "image.install_bootloader" => {
                self.run_later(result, script.bootloader_fails.clone().map_or(Ok(Value::Null), Err));
            }
            "standby.sync" => self.finish(result.id, Ok(Value::Null)),
            "iscsi.start_iscsi_target" | "iscsi.stop_iscsi_target" => {
                let begins = request.name.contains("start");
                if script.export_fails.is_none() {
                    self.change(|script| script.exports = begins);
                }
                let iqn = json!({"iscsi_target_iqn": request.params.get("iqn")});
                self.run_later(result, script.export_fails.clone().map_or(Ok(iqn), Err));
            }
            "system.lockdown" => {
                self.finish(result.id, Ok(Value::Null));
                self.ends.notify_one();
            }
            "log.collect_system_logs" => {
                let logs = script.logs.map(|logs| json!({"system_logs": logs}));
                self.finish(result.id, logs.ok_or_else(|| "journalctl: not found".to_owned()));
            }
            "rescue.finalize_rescue" => {
                assert_eq!(request.params["hashed"], true);
                if let Some(text) = script.rescue_fails {
                    return self.finish(result.id, Err(text));
                }
                let hash = request.params["rescue_password"].as_str().unwrap().to_owned();
                self.change(|script| script.rescue_password = Some(hash));
                self.finish(result.id, Ok(Value::Null));
                let agent = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(WORK).await;
                    agent.ends.notify_one();
                });
            }
            "standby.power_off" if script.stays_on => self.finish(result.id, Ok(Value::Null)),
            "standby.power_off" => {
                let machine = self.machine.clone();
                let pause = if script.ends_before_its_machine { FLUSH } else { WORK };
                tokio::spawn(async move {
                    tokio::time::sleep(pause).await;
                    machine.go_off();
                });
            }
            other => panic!("unexpected command {other}"),
        }
    }
}

fn refuse(status: StatusCode, text: &str) -> (StatusCode, Json<Fault>) {
    (status, Json(Fault::new(status.as_u16(), text)))
}

fn check(agent: &Agent, query: &HashMap<String, String>) -> Result<(), (StatusCode, Json<Fault>)> {
    match query.get("agent_token") == agent.script().token.as_ref() {
        true => Ok(()),
        false => Err(refuse(StatusCode::UNAUTHORIZED, "401 Unauthorized: Token invalid.")),
    }
}

/// An agent that cannot serve, for a while.
fn be_sick(agent: &Agent) -> Result<(), (StatusCode, Json<Fault>)> {
    let is_sick = agent.change(|script| {
        let is_sick = script.sick > 0;
        script.sick = script.sick.saturating_sub(1);
        is_sick
    });
    if is_sick { Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "out of memory")) } else { Ok(()) }
}

/// Whether a command, with its extension or without, executes a step.
fn is_execute(command: &str) -> bool {
    command.contains("execute_") && command.ends_with("_step")
}

fn is_running_step(command: &CommandResult) -> bool {
    command.command_name == DEPLOY_STEP && command.command_status == CommandStatus::Running
}

async fn list(State(agent): State<Agent>, Query(query): Query<HashMap<String, String>>) -> Answer {
    check(&agent, &query)?;
    be_sick(&agent)?;
    tokio::time::sleep(agent.script().slow.unwrap_or_default()).await;
    agent.until_vanished().await;
    let commands = agent.commands.lock().unwrap().clone();
    let is_at_work = commands.iter().any(is_running_step);
    agent.change(|script| script.listed_at_work += u32::from(is_at_work));
    let is_ended =
        |c: &CommandResult| is_execute(&c.command_name) && c.command_status != CommandStatus::Running;
    if commands.iter().any(is_ended) && agent.script().holds {
        agent.change(|script| script.held += 1);
        while agent.script().holds {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    Ok(Json(json!(CommandList { commands })))
}

async fn execute(
    State(agent): State<Agent>,
    Query(query): Query<HashMap<String, String>>,
    body: Bytes,
) -> Answer {
    check(&agent, &query)?;
    be_sick(&agent)?;
    tokio::time::sleep(agent.script().slow.unwrap_or_default()).await;
    if agent.script().deaf {
        std::future::pending::<()>().await;
    }
    let request: CommandRequest = serde_json::from_slice(&body).unwrap();
    let running = agent.commands.lock().unwrap().iter().any(|c| c.command_status == CommandStatus::Running);
    let is_step = is_execute(&request.name);
    let other_work = is_step
        && agent.change(|script| {
            let busy = script.busy > 0;
            script.busy = script.busy.saturating_sub(1);
            busy
        });
    if running || other_work {
        return Err(refuse(StatusCode::CONFLICT, "Agent is busy: executing command sync"));
    }
    let result = CommandResult::running(request.name.split_once('.').unwrap().1);
    agent.start(&result);
    agent.change(|script| script.accepted.push((request.name.clone(), request.params.clone().into())));
    agent.run_command(&request, &result);
    if is_step && agent.change(|script| std::mem::take(&mut script.loses_answer)) {
        std::future::pending::<()>().await;
    }
    let script = agent.script();
    let goes_off_unseen = script.is_switched_by_hand || script.ends_before_its_machine;
    let ends_before_it_answers = request.name == "standby.power_off" && goes_off_unseen
        || request.name == "rescue.finalize_rescue"
            && agent.change(|script| {
                let loses = script.loses_rescue_answers > 0;
                script.loses_rescue_answers = script.loses_rescue_answers.saturating_sub(1);
                loses
            });
    if ends_before_it_answers {
        agent.ends.notify_one();
        std::future::pending::<()>().await;
    }
    let commands = agent.commands.lock().unwrap();
    let result = commands.iter().find(|known| known.id == result.id).cloned().unwrap_or(result);
    Ok(Json(json!(result)))
}

async fn resources(State(agent): State<Agent>) -> Json<Value> {
    agent.until_vanished().await;
    let mut resources = json!({"id": "v1", "commands": [], "status": []});
    if !agent.script().offers_no_progress {
        resources["progress"] = json!([]);
    }
    Json(resources)
}

async fn progress(State(agent): State<Agent>) -> Json<Progress> {
    agent.change(|script| script.progress_asked += 1);
    agent.until_vanished().await;
    let writing = agent.commands.lock().unwrap().iter().any(|command| command.command_name == DEPLOY_STEP);
    if writing {
        agent.asked.notify_one();
    }
    let phase = match agent.commands.lock().unwrap().iter().any(is_running_step) {
        true => Phase::Writing,
        false if writing => Phase::Done,
        false => Phase::Idle,
    };
    Json(Progress { phase, bytes: 64, total_bytes: Some(128), bytes_per_second: 64, eta_seconds: Some(1) })
}
