//! The interface as a conductor meets it: rows of sections 1.2 to 1.6, over a real socket.

use super::*;
use crate::commands::{Command, Kind, Parameter};
use crate::http;
use crate::options::Options;
use farrier_protocol::error::{CommandError, ErrorKind};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const TOKEN: &str = "q3X7yVt0bUo4mQ8J2nS6eRk1wZ5cLdF9hGpTaNxYvBE";

/// What `test.hold` waits for; one channel per test is enough because each holds the lock.
static RELEASE: Mutex<Option<Receiver<()>>> = Mutex::new(None);
/// Tests that use `test.hold` run one after the other.
static HOLDING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const COMMANDS: &[Command] = &[
    Command {
        name: "echo",
        kind: Kind::Sync,
        parameters: &[Parameter { name: "text", required: true }],
        validate: Some(|params| match params.get("text") {
            Some(Value::Null) => {
                Err(CommandError::new(ErrorKind::InvalidCommandParamsError, "text must not be null"))
            }
            _ => Ok(()),
        }),
        run: |_, params| Ok(params["text"].clone()),
    },
    Command {
        name: "fail",
        kind: Kind::Async,
        parameters: &[],
        validate: None,
        run: |_, _| Err(CommandError::new(ErrorKind::ImageWriteError, "/dev/vda: no space left")),
    },
    Command {
        name: "panic",
        kind: Kind::Async,
        parameters: &[],
        validate: None,
        run: |_, _| panic!("a defect"),
    },
    Command {
        name: "hold",
        kind: Kind::Async,
        parameters: &[],
        validate: None,
        run: |_, _| {
            let receiver = RELEASE.lock().unwrap().take();
            receiver.unwrap().recv_timeout(Duration::from_secs(20)).unwrap();
            Ok(json!("released"))
        },
    },
];

fn find(extension: &str, command: &str) -> Result<&'static Command, CommandError> {
    match COMMANDS.iter().find(|one| extension == "test" && one.name == command) {
        Some(command) => Ok(command),
        None => crate::extensions::find(extension, command),
    }
}

struct Server {
    base: String,
    client: reqwest::Client,
    root: tempfile::TempDir,
}

impl Server {
    async fn start(token: Option<&str>) -> Self {
        http::install_tls_provider();
        let root = tempfile::tempdir().unwrap();
        let options = Options { agent_token: token.map(str::to_owned), ..Options::default() };
        let agent = Agent::new(options, root.path(), tokio::runtime::Handle::current()).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router(agent, find)).await });
        let redirects = reqwest::redirect::Policy::none();
        let client = reqwest::Client::builder().tls_certs_only([]).redirect(redirects).build().unwrap();
        Self { base, client, root }
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        let response = self.client.get(format!("{}{path}", self.base)).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap_or_default())
    }

    async fn post(&self, path: &str, body: impl Into<String>) -> (u16, Value) {
        let request = self.client.post(format!("{}{path}", self.base)).body(body.into());
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap_or_default())
    }

    async fn command(&self, name: &str, params: Value, wait: bool) -> (u16, Value) {
        let path = format!("/v1/commands/?wait={wait}&agent_token={TOKEN}");
        self.post(&path, json!({"name": name, "params": params}).to_string()).await
    }
}

#[tokio::test]
async fn descriptions_have_the_keys_of_the_contract() {
    let server = Server::start(Some(TOKEN)).await;
    for (path, keys) in [
        ("/", vec!["default_version", "description", "name", "versions"]),
        ("/v1/", vec!["commands", "id", "links", "media_types", "status"]),
        ("/v1/status", vec!["started_at", "version"]),
        ("/status", vec!["started_at", "version"]),
        ("/v1/progress", vec!["bytes", "bytes_per_second", "eta_seconds", "phase", "total_bytes"]),
    ] {
        let (status, body) = server.get(path).await;
        assert_eq!(status, 200, "{path}");
        let mut found: Vec<_> = body.as_object().unwrap().keys().collect();
        found.sort();
        assert_eq!(found, keys, "{path}");
    }
    assert!(server.get("/v1/status").await.1["started_at"].is_f64());
}

#[tokio::test]
async fn s01_every_command_route_wants_the_token() {
    let server = Server::start(Some(TOKEN)).await;
    let unknown = "/v1/commands/885f69bc-15ec-4c08-bf0d-8731503b49dd";
    for query in ["", "?agent_token=", "?agent_token=wrong"] {
        for path in ["/v1/commands/", "/commands/", unknown] {
            let (status, body) = server.get(&format!("{path}{query}")).await;
            assert_eq!(status, 401, "{path}{query}");
            assert_eq!(
                body,
                json!({"faultcode": "Client", "faultstring": "401 Unauthorized: Token invalid."})
            );
        }
        let (status, _) = server.post(&format!("/v1/commands/{query}"), "not even JSON").await;
        assert_eq!(status, 401);
    }
}

#[tokio::test]
async fn s01_an_agent_without_a_token_accepts_none() {
    let server = Server::start(None).await;
    assert_eq!(server.get("/v1/commands/?agent_token=").await.0, 401);
    assert_eq!(server.command("test.echo", json!({"text": "x"}), true).await.0, 401);
}

#[tokio::test]
async fn refusals_have_the_status_and_the_text_of_the_contract() {
    let server = Server::start(Some(TOKEN)).await;
    let path = format!("/v1/commands/?agent_token={TOKEN}");
    for (body, status, text) in [
        ("{", 400, "400 Bad Request: "),
        ("null", 400, "400 Bad Request: Missing or invalid name or params"),
        (r#"{"name": "a.b"}"#, 400, "400 Bad Request: Missing or invalid name or params"),
        (r#"{"name": 1, "params": {}}"#, 400, "400 Bad Request: Missing or invalid name or params"),
        (r#"{"name": "a.b", "params": []}"#, 400, "400 Bad Request: Missing or invalid name or params"),
        (r#"{"name": "sync", "params": {}}"#, 400, "Invalid command: "),
        (r#"{"name": "nosuch.sync", "params": {}}"#, 404, "Not found: Extension with id nosuch not found."),
        (r#"{"name": "standby.x", "params": {}}"#, 400, "Invalid command: Unknown command: x"),
        (r#"{"name": "test.echo", "params": {"text": null}}"#, 400, "Invalid command parameters: text"),
        (
            r#"{"name": "standby.prepare_image", "params": {"image_info": {"id": "x"}}}"#,
            400,
            "Invalid command parameters: image_info.urls",
        ),
    ] {
        let (found, fault) = server.post(&path, body).await;
        assert_eq!(found, status, "{body}");
        assert_eq!(fault["faultcode"], "Client");
        let found = fault["faultstring"].as_str().unwrap();
        assert!(found.starts_with(text), "{body}: {found}");
    }
    let (status, fault) = server.get(&format!("/v1/commands/nosuch?agent_token={TOKEN}")).await;
    assert_eq!(status, 404);
    assert_eq!(fault["faultstring"], "Not found: Command Result with id nosuch not found.");
    assert_eq!(server.get(&path).await.1, json!({"commands": []}), "a refusal leaves no result");
}

#[tokio::test]
async fn slashes_methods_and_unknown_paths() {
    let server = Server::start(Some(TOKEN)).await;
    let response = server.client.get(format!("{}/v1/commands?wait=true", server.base)).send().await.unwrap();
    assert_eq!(response.status(), 308);
    assert_eq!(response.headers()["location"], "/v1/commands/?wait=true");
    for (path, status) in [("/v1", 308), ("/commands", 308), ("/v1/status/", 404), ("/v2", 404)] {
        assert_eq!(server.get(path).await.0, status, "{path}");
    }
    let (status, fault) = server.post("/v1/status", "").await;
    assert_eq!((status, &fault["faultcode"]), (405, &json!("Client")));
}

#[tokio::test]
async fn results_are_complete_and_kept_in_order() {
    let server = Server::start(Some(TOKEN)).await;
    let (status, echoed) = server.command("test.echo", json!({"text": "hello"}), true).await;
    assert_eq!(status, 200);
    assert_eq!(echoed["command_name"], "echo");
    assert_eq!(echoed["command_status"], "SUCCEEDED");
    assert_eq!(echoed["command_result"], json!({"result": "hello"}));
    let (status, failed) = server.command("test.fail", json!({}), true).await;
    assert_eq!(status, 200);
    assert_eq!(failed["command_status"], "FAILED");
    assert_eq!(
        failed["command_error"],
        json!({
            "type": "ImageWriteError",
            "code": 500,
            "message": "Error writing image to device",
            "details": "/dev/vda: no space left",
        })
    );
    let (_, list) = server.get(&format!("/v1/commands/?agent_token={TOKEN}")).await;
    assert_eq!(list, json!({"commands": [echoed, failed]}));
}

#[tokio::test]
async fn unknown_parameters_fail_the_command_and_not_the_list() {
    let server = Server::start(Some(TOKEN)).await;
    for params in [json!({}), json!({"text": "x", "force": true})] {
        let (status, result) = server.command("test.echo", params, true).await;
        assert_eq!((status, &result["command_status"]), (200, &json!("FAILED")));
        assert_eq!(result["command_error"]["type"], "TypeError");
    }
    assert_eq!(server.get(&format!("/v1/commands/?agent_token={TOKEN}")).await.0, 200);
}

#[tokio::test]
async fn a_panic_fails_its_command_only() {
    let server = Server::start(Some(TOKEN)).await;
    let (_, result) = server.command("test.panic", json!({}), true).await;
    assert_eq!(result["command_status"], "FAILED");
    assert_eq!(result["command_error"]["type"], "CommandExecutionError");
    assert_eq!(
        server.command("test.echo", json!({"text": "x"}), true).await.1["command_status"],
        "SUCCEEDED"
    );
}

fn hold() -> Sender<()> {
    let (sender, receiver) = channel();
    *RELEASE.lock().unwrap() = Some(receiver);
    sender
}

#[tokio::test]
async fn while_a_command_runs_others_are_refused_and_reads_answer() {
    let _guard = HOLDING.lock().await;
    let server = Server::start(Some(TOKEN)).await;
    let release = hold();
    let (status, running) = server.command("test.hold", json!({}), false).await;
    assert_eq!((status, &running["command_status"]), (200, &json!("RUNNING")));
    for name in ["test.echo", "nosuch.command"] {
        let (status, fault) = server.command(name, json!({"text": "x"}), false).await;
        assert_eq!(status, 409, "{name}");
        assert_eq!(fault["faultstring"], "Agent is busy: executing command hold");
    }
    let id = running["id"].as_str().unwrap();
    let one = format!("/v1/commands/{id}?agent_token={TOKEN}");
    assert_eq!(server.get(&one).await.1["command_result"], Value::Null);
    let waiting = async { server.get(&format!("{one}&wait=true")).await };
    let releasing = async { release.send(()).unwrap() };
    let ((_, finished), ()) = tokio::join!(waiting, releasing);
    assert_eq!(finished["command_status"], "SUCCEEDED");
    assert_eq!(finished["command_result"], json!({"result": "hold: released"}));
}

#[tokio::test]
async fn bodies_that_are_too_large_or_too_deep_are_refused() {
    let server = Server::start(Some(TOKEN)).await;
    let path = format!("/v1/commands/?agent_token={TOKEN}");
    let deep = format!("{{\"name\": \"a.b\", \"params\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let (status, fault) = server.post(&path, deep).await;
    assert_eq!((status, &fault["faultcode"]), (400, &json!("Client")));
    let announced =
        server.client.post(format!("{}{path}", server.base)).header("content-length", "99999999999");
    let reply = announced
        .body(reqwest::Body::wrap_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>()));
    let reply = reply.send().await.unwrap();
    assert_eq!(reply.status(), 413);
    let fault: Value = reply.json().await.unwrap();
    assert!(fault["faultstring"].as_str().unwrap().starts_with("413 Content Too Large"), "{fault}");
}

#[tokio::test]
async fn a_rescue_answers_before_the_agent_stops() {
    let server = Server::start(Some(TOKEN)).await;
    let directory = server.root.path().join("etc/ipa-rescue-config");
    let hash = format!("$6$salt${}", "a".repeat(86));
    for (prepared, params, status) in [
        (false, json!({"rescue_password": hash, "hashed": true}), "FAILED"),
        (true, json!({"rescue_password": "$1$old$hash", "hashed": true}), "FAILED"),
        (true, json!({"rescue_password": hash, "hashed": true}), "SUCCEEDED"),
    ] {
        if prepared {
            std::fs::create_dir_all(&directory).unwrap();
        }
        let (code, result) = server.command("rescue.finalize_rescue", params.clone(), false).await;
        assert_eq!((code, &result["command_status"]), (200, &json!(status)), "{params}");
        assert_eq!(result["command_name"], "finalize_rescue");
        let is_rescued = server.root.path().join("etc/.rescued").exists();
        assert_eq!(is_rescued, status == "SUCCEEDED", "{params}");
    }
    assert_eq!(std::fs::read_to_string(directory.join("ipa-rescue-password")).unwrap(), hash);
}

#[tokio::test]
async fn s20_a_lockdown_leaves_its_marker() {
    let server = Server::start(Some(TOKEN)).await;
    let (_, result) = server.command("system.lockdown", json!({}), false).await;
    assert_eq!((&result["command_status"], &result["command_result"]), (&json!("SUCCEEDED"), &Value::Null));
    assert!(server.root.path().join("run/farrier/locked-down").exists());
}
