//! An agent that speaks the contract and writes nothing.

#[path = "agent/interface.rs"]
mod interface;
#[path = "agent/script.rs"]
pub mod script;
#[path = "agent/signing.rs"]
pub mod signing;

pub use script::{Script, report};

use super::machine::FakeMachine;
use axum::Router;
use axum::routing::get;
use axum_server::tls_rustls::RustlsConfig;
use farrier_protocol::command::{CommandRequest, CommandResult, CommandStatus};
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::heartbeat::Heartbeat;
use farrier_protocol::image_info::ImageInfo;
use interface::{execute, list, progress, resources};
use serde_json::{Value, json};
use signing::Key;
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

    /// Ends a command after a while; a step that somebody watches not before its progress was asked for.
    fn run_later(&self, result: &CommandResult, outcome: Result<Value, String>) {
        let (agent, id) = (self.clone(), result.id);
        let (is_step, is_write) = (is_execute(&result.command_name), result.command_name == DEPLOY_STEP);
        let work = if self.script().loses_answer { LONG_WORK } else { WORK };
        tokio::spawn(async move {
            if is_write && agent.script().is_watched && !agent.script().offers_no_progress {
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
                    _ if proves => {
                        signing::erased(&script.proof, self.key.get().unwrap(), node, name, &step["nonce"])
                    }
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

/// Whether a command, with its extension or without, executes a step.
fn is_execute(command: &str) -> bool {
    command.contains("execute_") && command.ends_with("_step")
}
