//! What real conductors asked and real agents answered (`tests/golden/`), asked again of this agent.
//!
//! Commands and steps that would change the machine give what is recorded; those that only read it really run.
//! Dispatch, validation, listing, echoing, wrapping and states are the agent's own. Replies must have the
//! recorded status, keys and types, and list the recorded steps.

use super::form::differences;
use super::recording::{Recording, TO_AGENT, TO_CONDUCTOR};
use super::stand_in::{self, NEXT, Outcome, READING};
use super::{routes, server};
use crate::agent::Agent;
use crate::commands::allowance::Allowance;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

const TOKEN: &str = "AGENT-TOKEN";
/// Under these names listings give steps by manager.
const LISTINGS: [&str; 3] = ["clean_steps", "deploy_steps", "service_steps"];

/// There is one [`NEXT`].
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A recording and where its replay stands.
struct Replay {
    exchanges: Vec<Value>,
    agent: Arc<Agent>,
    base: String,
    client: reqwest::Client,
    /// Own ids of commands by the recorded ones.
    ids: BTreeMap<String, String>,
    /// Versions of the managers as they were listed; a conductor sends them back.
    versions: Value,
    /// Lets the running command end.
    release: Option<Sender<()>>,
    _root: tempfile::TempDir,
}

impl Replay {
    async fn new(exchanges: Vec<Value>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let agent = stand_in::agent(TOKEN, root.path());
        let router = routes::router(Arc::clone(&agent), stand_in::find);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(server::serve(listener, None, router, Allowance::of_machine(), pending()));
        let client = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
        let (ids, versions) = (BTreeMap::new(), Value::Null);
        Self { exchanges, agent, base, client, ids, versions, release: None, _root: root }
    }

    async fn run(mut self) {
        for index in 0..self.exchanges.len() {
            let exchange = self.exchanges[index].clone();
            match exchange["method"].as_str().unwrap() {
                "POST" => self.submit(&exchange).await,
                _ => self.read(&exchange).await,
            }
        }
    }

    async fn submit(&mut self, exchange: &Value) {
        self.finish().await;
        let mut request = exchange["request"].clone();
        self.send_versions_back(&mut request);
        let (release, released) = channel();
        let result = self.recorded_outcome(&exchange["reply"]["id"]);
        let is_about_partitions = request["name"] == "standby.get_partition_uuids";
        if is_about_partitions && let Ok(Value::Object(identifiers)) = &result {
            // No image was written that the agent would know them from.
            self.agent.set_partition_uuids(identifiers.clone());
        }
        *NEXT.lock().unwrap() = Some(Outcome { result, released });
        // A command that is recorded as running runs until a later exchange shows its end.
        self.release = Some(release).filter(|_| exchange["reply"]["command_status"] == "RUNNING");
        let reply = self.ask(exchange, &request).await;
        if let (Some(recorded), Some(own)) = (exchange["reply"]["id"].as_str(), reply["id"].as_str()) {
            self.ids.insert(recorded.to_owned(), own.to_owned());
        }
        if let Some(versions) = reply["command_result"].get("hardware_manager_version") {
            self.versions = versions.clone();
        }
        if READING.iter().any(|name| reply["command_name"] == *name) {
            assert!(NEXT.lock().unwrap().is_some(), "a stand-in has answered {request}");
        }
        if is_about_partitions {
            assert_eq!(reply["command_result"], exchange["reply"]["command_result"]);
        }
        let (own, recorded) = (listed_steps(&reply), listed_steps(&exchange["reply"]));
        let missing: Vec<_> = recorded.iter().filter(|step| !own.contains(step)).collect();
        assert!(missing.is_empty(), "{missing:#?} of {own:#?}");
        let echo = echoed_step(&reply["command_result"]);
        assert!(echo.is_none_or(|step| *step == request["params"]["step"]), "{reply:#}");
    }

    async fn read(&mut self, exchange: &Value) {
        let last = exchange["reply"]["commands"].as_array().and_then(|commands| commands.last());
        if last.is_some_and(|last| last["command_status"] != "RUNNING") {
            self.finish().await;
        }
        let reply = self.ask(exchange, &Value::Null).await;
        let names = |value: &Value| -> Vec<(Value, Value)> {
            let commands = value["commands"].as_array().into_iter().flatten();
            commands.map(|one| (one["command_name"].clone(), one["command_status"].clone())).collect()
        };
        assert_eq!(names(&reply), names(&exchange["reply"]));
    }

    /// Sends what the conductor sent, and compares.
    async fn ask(&self, exchange: &Value, request: &Value) -> Value {
        let (method, mut path) =
            (exchange["method"].as_str().unwrap(), exchange["path"].as_str().unwrap().to_owned());
        for (recorded, own) in &self.ids {
            path = path.replace(recorded, own);
        }
        let (status, mut reply) = self.send(method, &path, request).await;
        forget_other_managers(&mut reply, &exchange["reply"]);
        assert_eq!(json!(status), exchange["status"], "{method} {path}: {reply}");
        assert_eq!(
            differences(&reply, &exchange["reply"]),
            Vec::<String>::new(),
            "{method} {path}: {reply:#}"
        );
        reply
    }

    async fn send(&self, method: &str, path: &str, request: &Value) -> (u16, Value) {
        let body = if request.is_null() { String::new() } else { request.to_string() };
        let request = self.client.request(method.parse().unwrap(), format!("{}{path}", self.base)).body(body);
        let response = request.send().await.unwrap();
        let (status, body) = (response.status().as_u16(), response.bytes().await.unwrap());
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    /// Lets the running command end and waits until it has.
    async fn finish(&mut self) {
        let Some(release) = self.release.take() else { return };
        drop(release);
        let last = self
            .ids
            .values()
            .map(|id| format!("{}/v1/commands/{id}?wait=true&agent_token={TOKEN}", self.base));
        for url in last {
            self.client.get(url).send().await.unwrap();
        }
    }

    /// How the command with the recorded id ended; a step's own result without what the agent adds.
    fn recorded_outcome(&self, id: &Value) -> Result<Value, farrier_protocol::error::CommandError> {
        let mut listed = self.exchanges.iter().flat_map(|exchange| {
            let reply = &exchange["reply"];
            reply["commands"].as_array().into_iter().flatten().chain([reply])
        });
        let ended = listed.rfind(|one| one["id"] == *id && one["command_status"] != "RUNNING");
        let Some(ended) = ended else { return Ok(Value::Null) };
        if !ended["command_error"].is_null() {
            return Err(serde_json::from_value(ended["command_error"].clone()).unwrap());
        }
        let result = &ended["command_result"];
        let of_step =
            ["clean_result", "deploy_result", "service_result"].iter().find_map(|name| result.get(name));
        Ok(of_step.unwrap_or(result).clone())
    }

    fn send_versions_back(&self, request: &mut Value) {
        let Some(params) = request["params"].as_object_mut() else { return };
        for (_, version) in
            params.iter_mut().filter(|(name, value)| name.ends_with("_version") && value.is_object())
        {
            *version = self.versions.clone();
        }
    }
}

fn echoed_step(result: &Value) -> Option<&Value> {
    ["clean_step", "deploy_step", "service_step"].iter().find_map(|name| result.get(name))
}

/// This machine may have managers of its own, whose steps look otherwise.
fn forget_other_managers(reply: &mut Value, recorded: &Value) {
    for listing in LISTINGS {
        let recorded = &recorded["command_result"][listing];
        if let Some(managers) = reply.pointer_mut(&format!("/command_result/{listing}")) {
            managers.as_object_mut().unwrap().retain(|manager, _| recorded.get(manager).is_some());
        }
    }
    let commands = reply.get_mut("commands").and_then(Value::as_array_mut).into_iter().flatten();
    commands
        .zip(recorded["commands"].as_array().into_iter().flatten())
        .for_each(|(command, recorded)| forget_other_managers(command, recorded));
}

/// Steps in the reply to a listing: whose they are, their name, interface, priority, and whether they can be
/// aborted.
fn listed_steps(reply: &Value) -> Vec<Value> {
    let result = &reply["command_result"];
    let listed = LISTINGS.iter().find_map(|name| result.get(name));
    let managers = listed.and_then(Value::as_object).into_iter().flatten();
    let steps = managers.flat_map(|(manager, steps)| {
        let steps = steps.as_array().into_iter().flatten();
        steps.map(move |step| {
            let fields = ["step", "interface", "priority", "reboot_requested", "abortable"];
            json!([manager, fields.map(|field| &step[field])])
        })
    });
    steps.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn x34_recorded_conductors_get_answers_of_the_recorded_form() {
    let _alone = ALONE.lock().await;
    for recording in Recording::all() {
        for boot in recording.boots(TO_AGENT) {
            println!("{}: {} exchanges", recording.name, boot.len());
            Replay::new(boot).await.run().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn x34_the_inventory_has_the_form_of_every_recorded_one() {
    let _alone = ALONE.lock().await;
    let mut count = 0;
    for recording in Recording::all() {
        let posted = recording.boots(TO_CONDUCTOR).concat().into_iter();
        for posted in posted.filter(|exchange| exchange["path"] == "/v1/continue_inspection") {
            let asked = Replay::new(vec![]).await;
            let request = json!({"name": "poll.get_hardware_info", "params": {}});
            let path = format!("/v1/commands/?wait=true&agent_token={TOKEN}");
            let result = asked.send("POST", &path, &request).await.1["command_result"].take();
            // What this machine, or that one, has not is null.
            let mut found = differences(&result, &posted["request"]["inventory"]);
            found.retain(|difference| !difference.contains("null"));
            assert_eq!(found, Vec::<String>::new(), "{}: {result:#}", recording.name);
            count += 1;
        }
    }
    assert!(count >= 3, "{count} inspections are recorded");
}

#[tokio::test]
async fn a_reply_of_another_form_is_noticed() {
    let _alone = ALONE.lock().await;
    let exchange = |result: Value| {
        json!({
            "direction": "conductor->agent", "method": "POST", "status": 200,
            "path": format!("/v1/commands/?wait=true&agent_token={TOKEN}"),
            "request": {"name": "clean.get_clean_steps", "params": {"node": {"uuid": 1}, "ports": []}},
            "reply": {"id": "x", "command_name": "x", "command_status": "FAILED", "command_result": null,
                "command_error": result},
        })
    };
    let error = json!({"type": "x", "code": 400, "message": "x", "details": "x"});
    Replay::new(vec![exchange(error.clone())]).await.run().await;
    for wrong in [json!({}), json!({"type": "x"}), Value::Null, Value::Object(Map::new())] {
        let replayed = tokio::spawn(Replay::new(vec![exchange(wrong.clone())]).await.run());
        assert!(replayed.await.is_err(), "{wrong}");
    }
}
