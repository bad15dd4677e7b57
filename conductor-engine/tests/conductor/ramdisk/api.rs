//! What agents call, and what others try.

use crate::stand_ins::agent::{Script, report};
use crate::stand_ins::stage::{MAC, Stage, fault, new_node};
use farrier_conductor::EventKind;
use farrier_conductor::PowerAction;
use farrier_conductor::model::ProvisionState;
use farrier_engine::records::Order;
use serde_json::{Value, json};

/// A stage whose node waits for an agent that is played by the test.
async fn waiting() -> Stage {
    let stage = Stage::new(Script { silent: true, ..Script::default() }).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::DeployWait).await;
    stage
}

async fn look_up(stage: &Stage) -> Value {
    let reply = stage.get(&format!("/v1/lookup?addresses=00:00:00:00:00:09,{MAC}"), "1.62").await;
    assert_eq!(reply.status(), 200);
    reply.json().await.unwrap()
}

fn token(reply: &Value) -> &str {
    reply["config"]["agent_token"].as_str().unwrap()
}

fn heartbeat(token: &str) -> Value {
    json!({
        "callback_url": "https://127.0.0.1:1",
        "agent_token": token,
        "agent_version": "0.1.0",
        "agent_verify_ca": "not looked at before it is used",
    })
}

#[tokio::test]
async fn the_root_tells_the_newest_version() {
    let stage = Stage::new(Script::default()).await;
    for path in ["/", "/v1", "/v1/"] {
        let reply = stage.http.get(format!("{}{path}", stage.ramdisk_api)).send().await.unwrap();
        assert_eq!(reply.status(), 200, "{path}");
        assert_eq!(reply.headers()["x-openstack-ironic-api-maximum-version"], "1.110");
        assert_eq!(reply.headers()["x-openstack-ironic-api-version"], "1.1");
        let body: Value = reply.json().await.unwrap();
        assert_eq!(body["default_version"]["version"], "1.110");
        assert_eq!(body["default_version"]["min_version"], "1.1");
    }
}

#[tokio::test]
async fn versions_are_negotiated() {
    let stage = waiting().await;
    let path = format!("/v1/lookup?addresses={MAC}");
    for (version, status) in [
        ("1.0", 406),
        ("1.111", 406),
        ("2.1", 406),
        ("x", 406),
        ("1.21", 404),
        ("1.22", 200),
        ("latest", 200),
    ] {
        assert_eq!(stage.get(&path, version).await.status(), status, "{version}");
    }
    let old: Value = stage.get(&path, "1.31").await.json().await.unwrap();
    assert!(old["config"].get("agent_token").is_none());
}

#[tokio::test]
async fn s41_the_token_is_handed_out_once_per_boot() {
    let stage = waiting().await;
    let first = look_up(&stage).await;
    assert_eq!(token(&first).len(), 43);
    assert_eq!(token(&look_up(&stage).await), "******");
    stage.conductor.order("n1", Order::power(PowerAction::Reboot)).await.unwrap();
    stage.idle().await;
    let next_boot = look_up(&stage).await;
    assert_eq!(token(&next_boot).len(), 43);
    assert_ne!(token(&next_boot), token(&first));
}

#[tokio::test]
async fn a_machine_that_has_its_token_may_look_up_while_its_node_is_locked() {
    // The conductor holds the lock while it waits for an answer that does not come.
    let stage = Stage::new(Script { deaf: true, ..Script::default() }).await;
    stage.deploy().await;
    stage.until(|events| events.iter().any(|event| matches!(event.kind, EventKind::FirstHeartbeat))).await;
    let is_locked = async || stage.node().await.reservation.is_some();
    while !is_locked().await {
        tokio::task::yield_now().await;
    }
    assert_eq!(token(&look_up(&stage).await), "******");
    assert!(is_locked().await, "the lookup was answered too late to prove anything");
}

#[tokio::test]
async fn s40_a_lookup_tells_no_more_than_the_agent_needs() {
    let stage = waiting().await;
    let reply = look_up(&stage).await;
    let keys: Vec<_> = reply["node"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["driver_internal_info", "instance_info", "links", "properties", "uuid"]);
    assert_eq!(reply["node"]["instance_info"]["configdrive"], "******");
    let own = token(&reply).to_owned();
    assert!(!look_up(&stage).await.to_string().contains(&own));
    assert_eq!(reply["config"]["heartbeat_timeout"], 300);
    assert_eq!(reply["config"]["agent_token_required"], true);
    assert_eq!(reply["config"]["tls_min_version"], "1.3");
}

#[tokio::test]
async fn lookup_works_by_uuid_and_on_every_spelling_of_the_path() {
    let stage = waiting().await;
    let uuid = stage.node().await.uuid;
    for path in [
        format!("/v1/lookup?node_uuid={uuid}"),
        format!("/v1/lookup/?node_uuid={uuid}&addresses=00:00:00:00:00:09"),
        format!("/lookup?addresses={}", MAC.to_uppercase().replace(':', "-")),
        format!("/lookup/?addresses=nonsense,{MAC}"),
    ] {
        assert_eq!(stage.get(&path, "1.62").await.status(), 200, "{path}");
    }
}

#[tokio::test]
async fn f42_an_address_that_is_none_spoils_no_lookup() {
    let stage = waiting().await;
    let infiniband = "a0:00:02:20:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:00:01";
    for bad in ["", "nonsense", "00:00:00:00:00", "00:00:00:00:00:zz", "None", infiniband, "%F0%9F%90%B4"] {
        for addresses in [format!("{bad},{MAC}"), format!("{MAC},{bad}"), format!("{bad},{MAC},{MAC},{bad}")]
        {
            let found = stage.get(&format!("/v1/lookup?addresses={addresses}"), "1.62").await;
            assert_eq!(found.status(), 200, "{addresses}");
        }
    }
}

#[tokio::test]
async fn every_failed_lookup_looks_the_same() {
    let stage = waiting().await;
    let mut texts = Vec::new();
    stage.conductor.create_node(new_node("idle", "52:54:00:00:00:02")).await.unwrap();
    for path in [
        "/v1/lookup?addresses=52:54:00:00:00:99".to_owned(),
        "/v1/lookup?addresses=52:54:00:00:00:02".to_owned(),
        format!("/v1/lookup?addresses=52:54:00:00:00:02,{MAC}"),
        "/v1/lookup?node_uuid=1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11".to_owned(),
    ] {
        let reply = stage.get(&path, "1.62").await;
        assert_eq!(reply.status(), 404, "{path}");
        texts.push(reply.text().await.unwrap());
    }
    texts.dedup();
    assert_eq!(texts.len(), 1, "{texts:?}");
    for path in ["/v1/lookup", "/v1/lookup?addresses=", "/v1/lookup?addresses=x", "/v1/lookup?node_uuid=x"] {
        assert_eq!(stage.get(path, "1.62").await.status(), 400, "{path}");
    }
}

#[tokio::test]
async fn only_the_agents_own_heartbeats_are_accepted() {
    let stage = waiting().await;
    let uuid = stage.node().await.uuid.to_string();
    let no_token_yet = stage.heartbeat(&uuid, &heartbeat(&"x".repeat(43))).await;
    assert_eq!(no_token_yet.status(), 400);
    let token = token(&look_up(&stage).await).to_owned();
    for (field, value, part) in [
        ("agent_token", json!("wrong"), "invalid or missing agent token"),
        ("agent_token", Value::Null, "invalid or missing agent token"),
        ("callback_url", json!("http://127.0.0.1:1"), "requires TLS"),
        ("callback_url", json!("gopher://127.0.0.1"), "http or https"),
        ("callback_url", json!(5), "cannot be used"),
        ("callback_url", Value::Null, "cannot be used"),
        ("agent_version", Value::Null, "agent_version"),
        ("agent_status", json!("start"), "1.72"),
    ] {
        let mut body = heartbeat(&token);
        body[field] = value;
        let reply = stage.heartbeat(&uuid, &body).await;
        assert_eq!(reply.status(), 400, "{body}");
        let text = fault(reply).await;
        assert!(text.contains(part), "{part:?} in {text:?}");
        assert!(!text.contains(&token), "{text}");
    }
    assert!(!stage.node().await.driver_internal_info.others.contains_key("agent_url"));
}

#[tokio::test]
async fn s42_the_callback_url_is_frozen_until_the_power_changes() {
    let stage = Stage::new(Script::default()).await;
    stage.deploy().await;
    // The real agent calls; a second one that knows its token and has another address is refused.
    stage.until(|events| events.len() > 1).await;
    let token = stage.machine.script.lock().unwrap().token.clone().unwrap();
    let reply = stage.heartbeat("n1", &heartbeat(&token)).await;
    assert_eq!(reply.status(), 400);
    assert!(fault(reply).await.contains("callback_url"));
    stage.wait_for(ProvisionState::Active).await;
}

#[tokio::test]
async fn bad_requests_get_a_clear_refusal() {
    let stage = waiting().await;
    // Of a node that there is not, as of one whose token it is not.
    let unknown = stage.heartbeat("nobody", &heartbeat("x")).await;
    assert_eq!(unknown.status(), 400);
    assert!(fault(unknown).await.contains("invalid or missing agent token"));
    let url = format!("{}/v1/heartbeat/n1", stage.ramdisk_api);
    for body in ["", "{", "[]", "null", "\"x\"", "{\"callback_url\": "] {
        let request = stage.http.post(&url).header("X-OpenStack-Ironic-API-Version", "1.68").body(body);
        let reply = request.send().await.unwrap();
        assert_eq!(reply.status(), 400, "{body:?}");
        assert!(!fault(reply).await.is_empty());
    }
    let large = stage.http.post(&url).body("x".repeat(2 << 20)).send().await;
    assert!(large.is_err() || large.is_ok_and(|reply| reply.status() == 413));
    for (path, status) in [("/v2", 404), ("/v1/nodes", 404), ("/v1/heartbeat/n1", 405)] {
        let reply = stage.get(path, "1.68").await;
        assert_eq!(reply.status(), status, "{path}");
        assert!(!fault(reply).await.is_empty());
    }
    let old = stage.http.post(&url).json(&heartbeat("x")).send().await.unwrap();
    assert_eq!(old.status(), 404);
}

#[tokio::test]
async fn endpoints_that_are_switched_off_refuse_whoever_calls_and_the_root_still_answers() {
    let stage = Stage::with(Script::default(), |settings| settings.enable_ramdisk_endpoints = false).await;
    for path in ["/v1/lookup?addresses=x", "/lookup/", &format!("/v1/lookup?addresses={MAC}")] {
        let reply = stage.get(path, "1.62").await;
        assert_eq!(reply.status(), 403, "{path}");
        assert!(fault(reply).await.contains("enable_ramdisk_endpoints"), "{path}");
    }
    for node in ["n1", "nobody"] {
        assert_eq!(stage.heartbeat(node, &heartbeat("x")).await.status(), 403, "{node}");
    }
    let posted = stage.http.post(format!("{}/v1/continue_inspection", stage.ramdisk_api)).json(&report(MAC));
    assert_eq!(posted.send().await.unwrap().status(), 403);
    for path in ["/", "/v1"] {
        assert_eq!(stage.get(path, "1.62").await.status(), 200, "{path}");
    }
}
