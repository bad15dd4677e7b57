//! What happened to a node, as its history tells.

use crate::stand_ins::agent::Script;
use crate::stand_ins::stage::{Stage, fault, image};
use async_trait::async_trait;
use axum::http::request::Parts;
use farrier_access::{Authorization, Denial, Identity, Role};
use farrier_conductor::model::ProvisionState;
use farrier_engine::records::HISTORY_LIMIT;
use farrier_engine::store::EvidenceStore;
use farrier_node_api::authorization::authorized;
use farrier_node_api::nodes::nodes_router;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpListener;

async fn get(stage: &Stage, path: &str, version: &str) -> reqwest::Response {
    let request = stage.http.get(format!("{}{path}", stage.node_api));
    request.header("X-OpenStack-Ironic-API-Version", version).send().await.unwrap()
}

async fn history(stage: &Stage, query: &str) -> Value {
    get(stage, &format!("/v1/nodes/n1/history{query}"), "1.78").await.json().await.unwrap()
}

fn events(history: &Value) -> Vec<String> {
    let entries = history["history"].as_array().unwrap().iter();
    entries.map(|entry| entry["event"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_deployment_that_fails_is_told_from_its_order_to_its_end() {
    let stage = Stage::new(Script { write_fails: Some("disk full".into()), ..Script::default() }).await;
    stage.deploy_and_fail().await;
    stage.idle().await;
    let told = history(&stage, "?detail=true").await;
    let events = events(&told);
    let position = |part: &str| {
        let found = events.iter().position(|event| event.contains(part));
        found.unwrap_or_else(|| panic!("{part:?} is not in {events:#?}"))
    };
    let expected = [
        r#"from "available" to "deploying", on the way to "active""#,
        "power on",
        "deploy step deploy.write_image",
        r#"ended as "deploy failed""#,
        "power off",
    ];
    let places: Vec<_> = expected.iter().map(|part| position(part)).collect();
    assert!(places.is_sorted(), "{places:?} {events:#?}");
    let failure = &told["history"][places[3]];
    assert_eq!((&failure["severity"], &failure["event_type"]), (&json!("ERROR"), &json!("provisioning")));
    assert!(failure["event"].as_str().unwrap().contains("disk full"), "{failure}");
    assert_eq!((&failure["conductor"], &failure["user"]), (&json!("farrier"), &Value::Null));
}

#[tokio::test]
async fn entries_are_listed_and_shown_as_in_ironic() {
    let stage = Stage::new(Script::default()).await;
    for on in [true, false, true] {
        stage.conductor.set_maintenance("n1", on, Some("fan".into())).await.unwrap();
    }
    assert_eq!(get(&stage, "/v1/nodes/n1/history", "1.77").await.status(), 404);
    let told = history(&stage, "").await;
    assert_eq!(events(&told), ["maintenance begins: fan", "maintenance ends", "maintenance begins: fan"]);
    let first = &told["history"][0];
    let fields: Vec<_> = first.as_object().unwrap().keys().cloned().collect();
    assert_eq!(fields, ["created_at", "event", "links", "severity", "uuid"]);
    let (node, uuid) = (stage.node().await.uuid, first["uuid"].as_str().unwrap());
    let place = format!("{}/v1/nodes/{node}/history/{uuid}", stage.node_api);
    assert_eq!(first["links"][0]["href"], place);
    let shown: Value =
        get(&stage, &format!("/v1/nodes/n1/history/{uuid}"), "1.78").await.json().await.unwrap();
    assert_eq!((&shown["event"], &shown["event_type"]), (&first["event"], &json!("maintenance")));
    // Part by part.
    let part = history(&stage, "?limit=2").await;
    assert_eq!(events(&part).len(), 2);
    let next = part["next"].as_str().unwrap().strip_prefix(&stage.node_api).unwrap();
    let rest: Value = get(&stage, next, "1.78").await.json().await.unwrap();
    assert_eq!(events(&rest), ["maintenance begins: fan"]);
    for (path, status) in [("/nobody", 404), ("?marker=nobody", 404), ("?wish=1", 400), ("?limit=x", 400)] {
        assert_eq!(
            get(&stage, &format!("/v1/nodes/n1/history{path}"), "1.78").await.status(),
            status,
            "{path}"
        );
    }
    let unknown = get(&stage, "/v1/nodes/n2/history", "1.78").await;
    assert_eq!(unknown.status(), 404);
    assert!(fault(unknown).await.contains("n2"));
}

/// Who asks, as the test says.
struct Everybody;

#[async_trait]
impl Authorization for Everybody {
    async fn identify(&self, request: &Parts) -> Result<Identity, Denial> {
        let name = request.headers["x-name"].to_str().unwrap().to_owned();
        Ok(Identity { name, role: Role::Admin })
    }
}

#[tokio::test]
async fn whoever_wanted_something_is_named_and_what_follows_is_the_conductors_own() {
    let stage = Stage::new(Script::default()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = authorized(nodes_router(stage.conductor.clone()), Arc::new(Everybody));
    tokio::spawn(axum::serve(listener, router).into_future());
    let body = json!({"instance_info": image()});
    let order = stage.http.put(format!("{url}/farrier/v1/nodes/n1/deployment")).header("x-name", "groom");
    assert_eq!(order.json(&body).send().await.unwrap().status(), 202);
    stage.wait_for(ProvisionState::Active).await;
    let told = history(&stage, "?detail=true").await;
    let users: Vec<_> = told["history"].as_array().unwrap().iter().map(|entry| &entry["user"]).collect();
    assert_eq!(users[0], "groom", "{told:#}");
    assert!(users[1..].iter().all(|user| user.is_null()), "{told:#}");
}

#[tokio::test]
async fn a_history_is_bounded_and_ends_with_its_node() {
    let stage = Stage::new(Script::default()).await;
    let uuid = stage.node().await.uuid;
    for turn in 0..u64::from(HISTORY_LIMIT) + 5 {
        let reason = Some(turn.to_string());
        stage.conductor.set_maintenance("n1", turn % 2 == 0, reason).await.unwrap();
    }
    let entries = stage.store.history(uuid).await.unwrap();
    assert_eq!(entries.len(), HISTORY_LIMIT as usize);
    assert_eq!(entries[0].event, "maintenance ends");
    assert_eq!(entries.last().unwrap().event, format!("maintenance begins: {}", HISTORY_LIMIT + 4));
    stage.conductor.remove_node("n1").await.unwrap();
    assert_eq!(stage.store.history(uuid).await.unwrap(), []);
}
