//! What clients of Ironic send that have a way of their own: a UUID that is taken.

use crate::agent::Script;
use crate::node_api::{ask, get, set};
use crate::stage::{Stage, fault};
use reqwest::Method;
use serde_json::{Value, json};

const U: &str = "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11";

async fn post(stage: &Stage, path: &str, body: Value) -> reqwest::Response {
    ask(stage, Method::POST, path, &body).await
}

/// Each kind of record that takes a UUID, twice: the first one stays as it is.
#[tokio::test]
async fn k01_a_uuid_is_never_accepted_twice() {
    let stage = Stage::new(Script::default()).await;
    let node = stage.node().await.uuid;
    let other = post(&stage, "/v1/nodes", json!({"driver": "fake", "name": "n2"})).await;
    let other: Value = other.json().await.unwrap();
    let step = json!([{"interface": "deploy", "step": "deploy", "args": {}, "priority": 50}]);
    let clean = json!([{"interface": "deploy", "step": "erase_devices", "args": {}, "order": 1}]);
    for (path, list, first, second) in [
        (
            "ports",
            "ports",
            json!({"node_uuid": node, "address": "52:54:00:00:0a:01"}),
            json!({"node_uuid": node, "address": "52:54:00:00:0a:02"}),
        ),
        ("ports", "ports", json!({}), json!({"node_uuid": other["uuid"], "address": "52:54:00:00:0a:03"})),
        ("nodes", "nodes", json!({"driver": "fake", "name": "a"}), json!({"driver": "fake", "name": "b"})),
        ("chassis", "chassis", json!({"description": "a"}), json!({"description": "b"})),
        (
            "portgroups",
            "portgroups",
            json!({"node_uuid": node, "name": "a"}),
            json!({"node_uuid": node, "name": "b"}),
        ),
        (
            "volume/connectors",
            "connectors",
            json!({"node_uuid": node, "type": "iqn", "connector_id": "a"}),
            json!({"node_uuid": node, "type": "iqn", "connector_id": "b"}),
        ),
        (
            "volume/targets",
            "targets",
            json!({"node_uuid": node, "volume_type": "iscsi", "volume_id": "a", "boot_index": 0}),
            json!({"node_uuid": node, "volume_type": "iscsi", "volume_id": "b", "boot_index": 1}),
        ),
        (
            "deploy_templates",
            "deploy_templates",
            json!({"name": "CUSTOM_A", "steps": step}),
            json!({"name": "CUSTOM_B", "steps": step}),
        ),
        (
            "runbooks",
            "runbooks",
            json!({"name": "CUSTOM_A", "steps": clean}),
            json!({"name": "CUSTOM_B", "steps": clean}),
        ),
        (
            "allocations",
            "allocations",
            json!({"name": "a", "resource_class": "x"}),
            json!({"name": "b", "resource_class": "x"}),
        ),
    ] {
        // One UUID for each kind, since some kinds share theirs.
        let uuid =
            path.bytes().fold(0x1f4c_3c6e_u128 << 96, |sum, byte| sum.wrapping_mul(257) + u128::from(byte));
        let uuid = uuid::Uuid::from_u128(uuid);
        let with = |mut body: Value| {
            body["uuid"] = json!(uuid);
            body
        };
        if first != json!({}) {
            let reply = post(&stage, &format!("/v1/{path}"), with(first)).await;
            assert_eq!(reply.status(), 201, "{path}: {}", reply.text().await.unwrap());
        }
        let shown = async || {
            let mut shown = get(&stage, &format!("/v1/{path}/{uuid}")).await;
            // An allocation goes on by itself.
            for moving in ["state", "last_error", "updated_at"] {
                shown.as_object_mut().unwrap().remove(moving);
            }
            shown
        };
        let before = shown().await;
        let count = async || get(&stage, &format!("/v1/{path}")).await[list].as_array().unwrap().len();
        let counted = count().await;
        let reply = post(&stage, &format!("/v1/{path}"), with(second)).await;
        assert_eq!(reply.status(), 409, "{path}");
        let text = fault(reply).await;
        assert!(text.contains(&format!("UUID {uuid} already exists")), "{path}: {text}");
        assert_eq!((shown().await, count().await), (before, counted), "{path}");
    }
}

/// An allocation whose UUID is an instance that a node has already would take that node.
#[tokio::test]
async fn k01_an_allocation_does_not_take_over_an_instance() {
    let stage = Stage::new(Script::default()).await;
    let change = json!({"/instance_uuid": U, "/resource_class": "x"});
    assert_eq!(set(&stage, "n1", &change).await.status(), 200);
    let reply = post(&stage, "/v1/allocations", json!({"uuid": U, "resource_class": "x"})).await;
    assert_eq!(reply.status(), 409);
    assert!(fault(reply).await.contains(&format!("instance {U} already exists")));
    assert_eq!(get(&stage, "/v1/allocations").await["allocations"], json!([]));
    assert_eq!(get(&stage, "/v1/nodes/n1").await["allocation_uuid"], Value::Null);
}

/// What is told of the same connector twice is true: it is of this node.
#[tokio::test]
async fn k16_a_refusal_names_what_is_there_already() {
    let stage = Stage::new(Script::default()).await;
    let node = stage.node().await.uuid;
    let connector = json!({"node_uuid": node, "type": "iqn", "connector_id": "a"});
    let port = json!({"node_uuid": node, "address": "52:54:00:00:0a:01"});
    for (path, body, part) in [
        ("volume/connectors", &connector, "a volume connector with iqn a already exists"),
        ("ports", &port, "a port with MAC address 52:54:00:00:0a:01 already exists"),
        ("nodes", &json!({"driver": "fake", "name": "n3"}), "a node with the name \"n3\" already exists"),
        ("allocations", &json!({"name": "a", "resource_class": "x"}), "the name \"a\" already exists"),
    ] {
        assert_eq!(post(&stage, &format!("/v1/{path}"), body.clone()).await.status(), 201, "{path}");
        let reply = post(&stage, &format!("/v1/{path}"), body.clone()).await;
        assert_eq!(reply.status(), 409, "{path}");
        let text = fault(reply).await;
        assert!(text.contains(part) && !text.contains("another node"), "{path}: {text}");
    }
}
