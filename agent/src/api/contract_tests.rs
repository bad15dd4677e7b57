//! Sections 1.2 to 1.5 of the contract, row by row, through the real listener.

use super::limits::Limits;
use super::test_server::{Reply, Server, TOKEN, shape};
use crate::commands::allowance::Allowance;
use crate::settings::options::{self, Options};
use serde_json::{Value, json};

/// One row: what is asked, and what the contract says comes back.
struct Row {
    method: &'static str,
    path: &'static str,
    body: &'static str,
    status: u16,
    shape: Value,
}

fn row(method: &'static str, path: &'static str, body: &'static str, status: u16, shape: Value) -> Row {
    Row { method, path, body, status, shape }
}

/// `TOKEN` and `ID` in a path stand for the real ones.
async fn check(server: &Server, rows: impl IntoIterator<Item = Row>) {
    let done = server.command("test.echo", json!({"text": "x"}), "true").await;
    let id = done.body["id"].as_str().unwrap();
    for row in rows {
        let path = row.path.replace("TOKEN", TOKEN).replace("ID", id);
        let reply = server.ask(row.method, &path, row.body).await;
        let named = format!("{} {path} {}: {reply:?}", row.method, row.body);
        assert_eq!(reply.status, row.status, "{named}");
        assert_eq!(shape(&reply.body), row.shape, "{named}");
    }
}

fn result_shape(error: Value, result: Value) -> Value {
    json!({
        "id": "string", "command_name": "string", "command_status": "string",
        "command_error": error, "command_result": result,
    })
}

fn fault_shape() -> Value {
    json!({"faultcode": "string", "faultstring": "string"})
}

#[tokio::test]
async fn routes_of_section_1_2_answer_with_and_without_the_prefix() {
    let link = json!({"href": "string", "rel": "string"});
    let description = json!({"href": "string", "rel": "string", "type": "string"});
    let version = json!({"id": "string", "links": [link]});
    let echoed = || result_shape(json!("null"), json!({"result": "string"}));
    let list = || json!({"commands": [echoed()]});
    let status = || json!({"started_at": "float", "version": "string"});
    let echo = r#"{"name": "test.echo", "params": {"text": "x"}}"#;
    let server = Server::start();
    let rows = [
        row(
            "GET",
            "/",
            "",
            200,
            json!({
                "name": "string", "description": "string", "versions": [version], "default_version": version,
            }),
        ),
        row(
            "GET",
            "/v1/",
            "",
            200,
            json!({
                "commands": [link], "status": [link], "progress": [link], "media_types": [{"base": "string", "type": "string"}],
                "id": "string", "links": [link],
            }),
        ),
        row("GET", "/v1/status", "", 200, status()),
        row("GET", "/status", "", 200, status()),
        row("GET", "/v1/commands/?agent_token=TOKEN", "", 200, list()),
        row("GET", "/commands/?agent_token=TOKEN", "", 200, list()),
        row("GET", "/v1/commands/ID?agent_token=TOKEN", "", 200, echoed()),
        row("GET", "/commands/ID?agent_token=TOKEN", "", 200, echoed()),
        row("GET", "/v1/commands/ID?wait=true&agent_token=TOKEN", "", 200, echoed()),
        row("POST", "/v1/commands/?wait=true&agent_token=TOKEN", echo, 200, echoed()),
        row("POST", "/commands/?wait=true&agent_token=TOKEN", echo, 200, echoed()),
    ];
    check(&server, rows).await;
    // Lists are known by their first entry; the second link is another one.
    let root = server.get("/").await.body;
    assert_eq!(shape(&root["default_version"]["links"][1]), description);
    let links = server.get("/v1/").await.body;
    assert_eq!(shape(&links["links"][1]), description);
    for (resource, relation, path) in [
        ("commands", "self", "/v1/commands"),
        ("commands", "bookmark", "/commands"),
        ("status", "self", "/v1/status"),
        ("status", "bookmark", "/status"),
        // Beyond the contract: who reads of it may ask for it.
        ("progress", "self", "/v1/progress"),
        ("progress", "bookmark", "/progress"),
    ] {
        let expected = json!({"href": server.url(path), "rel": relation});
        assert!(links[resource].as_array().unwrap().contains(&expected), "{links}");
    }
    assert_eq!(links["media_types"][0]["type"], "application/vnd.openstack.ironic-python-agent.v1+json");
}

#[tokio::test]
async fn progress_stands_beside_the_status() {
    let progress = || {
        json!({
            "phase": "string", "bytes": "integer", "total_bytes": "null",
            "bytes_per_second": "integer", "eta_seconds": "null", "retry_in_seconds": "null",
        })
    };
    let rows =
        [row("GET", "/v1/progress", "", 200, progress()), row("GET", "/progress", "", 200, progress())];
    check(&Server::start(), rows).await;
}

#[tokio::test]
async fn trailing_slashes_matter_and_the_query_is_kept() {
    let server = Server::start();
    for (method, path, location) in [
        ("GET", "/v1", "/v1/"),
        ("GET", "/v1/commands", "/v1/commands/"),
        ("GET", "/commands", "/commands/"),
        ("GET", "/v1/commands?wait=true&agent_token=a%20b", "/v1/commands/?wait=true&agent_token=a%20b"),
        ("POST", "/v1/commands?wait=true", "/v1/commands/?wait=true"),
        ("POST", "/commands", "/commands/"),
    ] {
        let reply = server.ask(method, path, "{}").await;
        assert_eq!(reply.status, 308, "{method} {path}");
        assert_eq!(reply.headers["location"], location, "{method} {path}");
    }
}

#[tokio::test]
async fn unknown_paths_are_404_and_other_methods_405() {
    let server = Server::start();
    let unknown = ["/v1/status/", "/status/", "/v2", "/v1/nosuch", "/v1/commands/ID/x", "/v1//commands/"];
    check(&server, unknown.map(|path| row("GET", path, "", 404, fault_shape()))).await;
    let known = [
        ("POST", "/", "GET,HEAD"),
        ("POST", "/v1/", "GET,HEAD"),
        ("DELETE", "/v1/status", "GET,HEAD"),
        ("PUT", "/v1/commands/?agent_token=TOKEN", "GET,HEAD,POST"),
        ("PATCH", "/v1/commands/?agent_token=TOKEN", "GET,HEAD,POST"),
        ("POST", "/v1/commands/ID?agent_token=TOKEN", "GET,HEAD"),
        ("DELETE", "/commands/ID?agent_token=TOKEN", "GET,HEAD"),
        ("PUT", "/v1/commands", "GET,HEAD,POST"),
    ];
    check(&server, known.map(|(method, path, _)| row(method, path, "", 405, fault_shape()))).await;
    for (method, path, allowed) in known {
        assert_eq!(server.ask(method, path, "").await.headers["allow"], allowed, "{method} {path}");
    }
}

#[tokio::test]
async fn the_body_is_read_as_json_whatever_it_is_called() {
    let server = Server::start();
    let path = format!("/v1/commands/?agent_token={TOKEN}");
    for content_type in ["application/json", "text/plain", "application/x-www-form-urlencoded", "x"] {
        let request = server.client.post(server.url(&path)).header("content-type", content_type);
        let reply = request.body(r#"{"name": "test.count", "params": {}}"#).send().await.unwrap();
        assert_eq!(reply.status(), 200, "{content_type}");
        assert_eq!(reply.headers()["content-type"], "application/json");
    }
}

#[tokio::test]
async fn results_of_section_1_3_are_complete_and_kept_in_order() {
    let server = Server::start();
    let mut expected = Vec::new();
    for (command, params, status, error, result) in [
        ("test.echo", json!({"text": "hello"}), "SUCCEEDED", None, json!({"result": "hello"})),
        ("test.say", json!({}), "SUCCEEDED", None, json!({"result": "say: hello"})),
        ("test.count", json!({}), "SUCCEEDED", None, json!([1, 2])),
        ("standby.get_partition_uuids", json!({}), "SUCCEEDED", None, json!({})),
        ("test.fail", json!({}), "FAILED", Some(("ImageWriteError", 500)), Value::Null),
        ("test.fail_sync", json!({}), "FAILED", Some(("DeviceNotFound", 404)), Value::Null),
        ("test.mismatch", json!({}), "CLEAN_VERSION_MISMATCH", Some(("VersionMismatch", 409)), Value::Null),
        ("test.defect", json!({}), "FAILED", Some(("CommandExecutionError", 500)), Value::Null),
        // Rows of section 1.5 that are called quirks there.
        ("test.echo", json!({}), "FAILED", Some(("TypeError", 500)), Value::Null),
        ("test.echo", json!({"text": "x", "force": true}), "FAILED", Some(("TypeError", 500)), Value::Null),
        ("standby.prepare_image", json!({}), "FAILED", Some(("TypeError", 500)), Value::Null),
    ] {
        let Reply { status: code, body, .. } = server.command(command, params, "true").await;
        assert_eq!(code, 200, "{command}: {body}");
        let error_shape =
            json!({"type": "string", "code": "integer", "message": "string", "details": "string"});
        let error_shape = if error.is_some() { error_shape } else { json!("null") };
        assert_eq!(shape(&body), result_shape(error_shape, shape(&result)), "{command}");
        assert_eq!(body["command_name"], command.split_once('.').unwrap().1, "bare names only");
        assert_eq!(
            (&body["command_status"], &body["command_result"]),
            (&json!(status), &result),
            "{command}"
        );
        if let Some((kind, code)) = error {
            assert_eq!(
                (&body["command_error"]["type"], &body["command_error"]["code"]),
                (&json!(kind), &json!(code))
            );
        }
        assert!(body["id"].as_str().unwrap().parse::<uuid::Uuid>().is_ok(), "{body}");
        expected.push(body);
    }
    let list = server.get(&format!("/v1/commands/?agent_token={TOKEN}")).await;
    assert_eq!((list.status, list.body), (200, json!({"commands": expected})));
}

#[tokio::test]
async fn refusals_of_sections_1_4_and_1_5_have_the_status_and_the_text_of_the_contract() {
    let server = Server::start();
    let path = format!("/v1/commands/?agent_token={TOKEN}");
    let malformed = "400 Bad Request: Missing or invalid name or params";
    let image = r#"{"name": "standby.prepare_image", "params": {"image_info": {"id": "x"}}}"#;
    for (body, status, text) in [
        ("", 400, "400 Bad Request: "),
        ("{", 400, "400 Bad Request: "),
        ("{\"name\": \"a.b\", \"params\": {}} x", 400, "400 Bad Request: "),
        ("null", 400, malformed),
        ("\"text\"", 400, malformed),
        ("[]", 400, malformed),
        (r#"{"name": "a.b"}"#, 400, malformed),
        (r#"{"params": {}}"#, 400, malformed),
        (r#"{"name": 1, "params": {}}"#, 400, malformed),
        (r#"{"name": "a.b", "params": []}"#, 400, malformed),
        (r#"{"name": "a.b", "params": null}"#, 400, malformed),
        (r#"{"name": "sync", "params": {}}"#, 400, "Invalid command: "),
        (r#"{"name": "nosuch.sync", "params": {}}"#, 404, "Not found: Extension with id nosuch not found."),
        (r#"{"name": "standby.x", "params": {}}"#, 400, "Invalid command: Unknown command: x"),
        (r#"{"name": "standby.sync.x", "params": {}}"#, 400, "Invalid command: Unknown command: sync.x"),
        (r#"{"name": "poll.set_node_info", "params": {"node_info": {}}}"#, 400, "Invalid command: "),
        (r#"{"name": "test.echo", "params": {"text": null}}"#, 400, "Invalid command parameters: text"),
        (r#"{"name": "test.echo", "params": {"text": 7}}"#, 400, "Invalid command parameters: text"),
        (image, 400, "Invalid command parameters: image_info.urls"),
        (r#"{"name": "flow.start_flow", "params": {"flow": {}}}"#, 400, "Invalid command parameters: flow"),
        (r#"{"name": "test.broken", "params": {}}"#, 500, "500 Internal Server Error: "),
    ] {
        let reply = server.ask("POST", &path, body).await;
        assert_fault(&reply, status, text);
    }
    let reply = server.get(&format!("/v1/commands/nosuch?agent_token={TOKEN}")).await;
    assert_fault(&reply, 404, "Not found: Command Result with id nosuch not found.");
    let list = server.get(&path).await;
    assert_eq!(list.body, json!({"commands": []}), "a refusal leaves no result");
}

#[tokio::test]
async fn s01_every_command_route_wants_the_token() {
    let server = Server::start();
    let unknown = "/v1/commands/885f69bc-15ec-4c08-bf0d-8731503b49dd";
    // The last one was this agent's in an earlier boot.
    for query in [
        "",
        "?agent_token=",
        "?agent_token=wrong",
        "?agent_token=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ] {
        for path in ["/v1/commands/", "/commands/", unknown] {
            let reply = server.get(&format!("{path}{query}")).await;
            assert_fault(&reply, 401, "401 Unauthorized: Token invalid.");
        }
        let reply = server.ask("POST", &format!("/v1/commands/{query}"), "not even JSON").await;
        assert_fault(&reply, 401, "401 Unauthorized: Token invalid.");
    }
    let twice = format!("/v1/commands/?agent_token=wrong&agent_token={TOKEN}");
    assert_eq!(server.get(&twice).await.status, 401, "the first of two counts");
    let header = server.client.get(server.url("/v1/commands/")).header("x-agent-token", TOKEN);
    assert_eq!(header.send().await.unwrap().status(), 401);
}

/// As Ironic asked before it sent the token with this question too: with an option, and without what commands were given.
#[tokio::test]
async fn s01_s02_nothing_but_the_list_without_arguments_is_there_without_the_token() {
    let options =
        Options { agent_token: Some(TOKEN.to_owned()), list_without_token: true, ..Options::default() };
    let server = Server::start_under(Limits::default(), Allowance::of_machine(), options);
    let id = server.command("test.echo", json!({"text": "x"}), "true").await.body["id"].clone();
    for query in ["", "?agent_token=wrong"] {
        let list = server.get(&format!("/v1/commands/{query}")).await;
        let last = &list.body["commands"][0];
        assert_eq!((list.status, &last["id"], &last["command_status"]), (200, &id, &json!("SUCCEEDED")));
        let one = server.get(&format!("/v1/commands/{}{query}", id.as_str().unwrap())).await;
        assert_fault(&one, 401, "401 Unauthorized: Token invalid.");
        let order = server.ask("POST", &format!("/v1/commands/{query}"), "{}").await;
        assert_fault(&order, 401, "401 Unauthorized: Token invalid.");
    }
}

#[tokio::test]
async fn s01_an_agent_without_a_token_accepts_none() {
    let server = Server::start_with(Default::default(), None);
    for query in ["", "?agent_token=", "?agent_token=null"] {
        let reply = server.get(&format!("/v1/commands/{query}")).await;
        assert_fault(&reply, 401, "401 Unauthorized: Token invalid.");
    }
    assert_eq!(server.command("test.count", json!({}), "true").await.status, 401);
}

#[tokio::test]
async fn s01_the_token_of_the_lookup_counts_from_then_on() {
    let server = Server::start_with(Default::default(), Some("a-token-from-the-kernel-line-of-this-boot"));
    let config = json!({"heartbeat_timeout": 300, "agent_token": TOKEN});
    assert!(server.agent.accept(&serde_json::from_value(config).unwrap()));
    let replayed = server.get("/v1/commands/?agent_token=a-token-from-the-kernel-line-of-this-boot").await;
    assert_fault(&replayed, 401, "401 Unauthorized: Token invalid.");
    assert_eq!(server.get(&format!("/v1/commands/?agent_token={TOKEN}")).await.status, 200);
}

#[tokio::test]
async fn s02_no_switch_makes_the_token_optional() {
    for token in [None, Some(TOKEN)] {
        let server = Server::start_with(Default::default(), token);
        // As a conductor says that takes agents without a token.
        for config in [
            json!({"agent_token_required": false}),
            json!({"agent_token_required": false, "agent_token": null}),
            json!({"agent_token_required": "false", "agent_token": ""}),
        ] {
            server.agent.accept(&serde_json::from_value(config.clone()).unwrap());
            assert_eq!(server.agent.token().as_deref(), token, "{config}");
            for query in ["", "?agent_token="] {
                let reply = server.get(&format!("/v1/commands/{query}")).await;
                assert_fault(&reply, 401, "401 Unauthorized: Token invalid.");
            }
        }
    }
    let about_tokens: Vec<_> =
        options::specs().map(|spec| spec.name).filter(|name| name.contains("token")).collect();
    // The second orders nothing, and is off unless somebody boots with it for an old conductor.
    assert_eq!(about_tokens, ["agent_token", "list_without_token"], "nothing makes an order without it");
    assert!(!Options::default().list_without_token);
}

#[tokio::test]
async fn s03_no_parameter_and_no_token_comes_back() {
    let server = Server::start();
    let secret = "a-config-drive-with-a-password";
    for (command, params) in [
        ("test.echo", json!({"text": secret, "force": true})),
        ("clean.execute_clean_step", json!({"step": {"interface": "x"}, "node": {"x": secret}, "ports": []})),
        ("standby.prepare_image", json!({"image_info": {"id": "x"}, "configdrive": secret})),
    ] {
        let reply = server.command(command, params, "true").await;
        assert!(!reply.body.to_string().contains(secret), "{command}: {}", reply.body);
    }
    let list = server.get(&format!("/v1/commands/?agent_token={TOKEN}")).await.body.to_string();
    assert!(!list.contains(secret) && !list.contains(TOKEN), "{list}");
}

/// The body of every status from 400 on (section 1.4).
pub fn assert_fault(reply: &Reply, status: u16, text: &str) {
    let code = if status >= 500 { "Server" } else { "Client" };
    assert_eq!((reply.status, shape(&reply.body)), (status, fault_shape()), "{text}: {reply:?}");
    assert_eq!(reply.body["faultcode"], code);
    assert!(reply.body["faultstring"].as_str().unwrap().starts_with(text), "{text}: {reply:?}");
    assert_eq!(reply.headers["content-type"], "application/json");
}
