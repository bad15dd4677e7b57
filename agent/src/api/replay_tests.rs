//! What real conductors asked and real agents answered (`tests/golden/`), asked again of this agent.
//!
//! Commands and steps that would change the machine give what is recorded; dispatch, validation,
//! listing, echoing, wrapping and states are the agent's own. Replies must have the recorded status,
//! keys and types.

use super::form::differences;
use super::stand_in::{self, NEXT, Outcome};
use super::{routes, server};
use crate::commands::allowance::Allowance;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};

const TOKEN: &str = "AGENT-TOKEN";

/// There is one [`NEXT`].
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A recording and where its replay stands.
struct Replay {
    exchanges: Vec<Value>,
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
        let router = routes::router(stand_in::agent(TOKEN, root.path()), stand_in::find);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(server::serve(listener, None, router, Allowance::of_machine(), pending()));
        let client = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
        let (ids, versions) = (BTreeMap::new(), Value::Null);
        Self { exchanges, base, client, ids, versions, release: None, _root: root }
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
        let body = if request.is_null() { String::new() } else { request.to_string() };
        let request = self.client.request(method.parse().unwrap(), format!("{}{path}", self.base)).body(body);
        let response = request.send().await.unwrap();
        let (status, body) = (response.status().as_u16(), response.bytes().await.unwrap());
        let reply = serde_json::from_slice(&body).unwrap_or(Value::Null);
        assert_eq!(json!(status), exchange["status"], "{method} {path}: {reply}");
        assert_eq!(
            differences(&reply, &exchange["reply"]),
            Vec::<String>::new(),
            "{method} {path}: {reply:#}"
        );
        reply
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

fn recordings() -> Vec<(PathBuf, Vec<Value>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let recordings = files.filter(|file| file.extension().is_some_and(|extension| extension == "json"));
    let read = |file: PathBuf| {
        let all: Vec<Value> = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let is_asked = |exchange: &Value| exchange["direction"] == "conductor->agent";
        (file, all.into_iter().filter(is_asked).collect())
    };
    recordings.map(read).collect()
}

#[tokio::test]
async fn recorded_conductors_get_answers_of_the_recorded_form() {
    let _alone = ALONE.lock().await;
    let recordings = recordings();
    assert!(recordings.iter().any(|(_, exchanges)| !exchanges.is_empty()));
    for (file, exchanges) in recordings {
        println!("{}: {} exchanges", file.display(), exchanges.len());
        Replay::new(exchanges).await.run().await;
    }
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
