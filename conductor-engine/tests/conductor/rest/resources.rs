//! Chassis, port groups, volume connectors and volumes: as resources, and what belongs to them.

use crate::stand_ins::agent::Script;
use crate::stand_ins::operator::{ask, ask_in, get, set};
use crate::stand_ins::stage::{Stage, fault};
use farrier_conductor::model::{Node, PowerState};
use reqwest::Method;
use serde_json::{Value, json};

/// A kind of resource.
struct Kind {
    path: &'static str,
    list: &'static str,
    since: u16,
    /// What one of them is like; a node is put into it where it belongs to one.
    fields: Value,
    of_node: bool,
    /// Another one may not have this.
    is_unique: bool,
}

fn kinds() -> [Kind; 4] {
    [
        Kind {
            path: "chassis",
            list: "chassis",
            since: 1,
            fields: json!({"description": "rack 7"}),
            of_node: false,
            is_unique: false,
        },
        Kind {
            path: "portgroups",
            list: "portgroups",
            since: 23,
            fields: json!({"name": "bond0", "address": "52:54:00:00:00:99"}),
            of_node: true,
            is_unique: true,
        },
        Kind {
            path: "volume/connectors",
            list: "connectors",
            since: 32,
            fields: json!({"type": "iqn", "connector_id": "iqn.2026-11.example:n1"}),
            of_node: true,
            is_unique: true,
        },
        Kind {
            path: "volume/targets",
            list: "targets",
            since: 32,
            fields: json!({
                "volume_type": "iscsi", "volume_id": "v1", "boot_index": 0, "properties": {"auth_password": "hunter2"},
            }),
            of_node: true,
            is_unique: true,
        },
    ]
}

impl Kind {
    async fn create(&self, stage: &Stage) -> Value {
        let reply =
            ask(stage, Method::POST, &format!("/v1/{}", self.path), &self.asked_for(stage).await).await;
        assert_eq!(reply.status(), 201, "{}", reply.text().await.unwrap());
        let place = reply.headers()["location"].to_str().unwrap().to_owned();
        let made: Value = reply.json().await.unwrap();
        assert_eq!(place, format!("{}/v1/{}/{}", stage.node_api, self.path, uuid(&made)));
        made
    }

    async fn asked_for(&self, stage: &Stage) -> Value {
        let mut fields = self.fields.clone();
        if self.of_node {
            fields["node_uuid"] = json!(stage.node().await.uuid);
        }
        fields
    }
}

fn uuid(resource: &Value) -> &str {
    resource["uuid"].as_str().unwrap()
}

#[tokio::test]
async fn plain_resources_are_created_listed_shown_changed_and_deleted() {
    let stage = Stage::new(Script::default()).await;
    stage.change_node(|node| node.power_state = Some(PowerState::Off)).await;
    for kind in kinds() {
        let all = format!("/v1/{}", kind.path);
        if kind.since > 1 {
            let before =
                ask_in(&format!("1.{}", kind.since - 1), &stage, Method::GET, &all, &Value::Null).await;
            assert_eq!(before.status(), 404, "{all}");
        }
        assert_eq!(get(&stage, &all).await, json!({kind.list: []}));
        let made = kind.create(&stage).await;
        for (field, value) in kind.fields.as_object().unwrap() {
            let is_secret = field == "properties";
            assert_eq!(made[field] == *value, !is_secret, "{made}");
        }
        assert!(!made.to_string().contains("hunter2"), "{made}");
        let again = ask(&stage, Method::POST, &all, &kind.asked_for(&stage).await).await;
        assert_eq!(again.status(), if kind.is_unique { 409 } else { 201 }, "{all}");

        let one = format!("{all}/{}", uuid(&made));
        let list = get(&stage, &format!("{all}?limit=1")).await;
        assert!(list[kind.list][0].get("extra").is_none() && list["next"].is_string(), "{list}");
        let list = get(&stage, &format!("{all}?detail=true")).await;
        assert!(list[kind.list][0]["extra"].is_object(), "{list}");
        if kind.since == 32 {
            let first =
                ask_in("1.32", &stage, Method::GET, &format!("{all}?detail=true"), &Value::Null).await;
            assert_eq!(first.status(), 200, "lists of volumes had details from the beginning");
        }
        let patch = json!([{"op": "add", "path": "/extra/a", "value": 1}]);
        let reply = ask(&stage, Method::PATCH, &one, &patch).await;
        assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap());
        let shown = get(&stage, &one).await;
        assert_eq!((&shown["extra"], &shown["uuid"]), (&json!({"a": 1}), &made["uuid"]));
        assert!(shown["updated_at"].is_string() && shown["links"].is_array(), "{shown}");
        let word = ask(&stage, Method::DELETE, &format!("{one}?force=yes"), &Value::Null).await;
        assert_eq!(word.status(), 400);
        assert_eq!(ask(&stage, Method::DELETE, &one, &Value::Null).await.status(), 204);
        assert_eq!(ask(&stage, Method::GET, &one, &Value::Null).await.status(), 404);
    }
}

#[tokio::test]
async fn plain_resources_that_cannot_be_are_refused_with_the_reason() {
    let stage = Stage::new(Script::default()).await;
    let node = stage.node().await.uuid;
    for (path, fields, part) in [
        ("chassis", json!({"colour": "red"}), "colour: there is no such field"),
        ("chassis", json!({"description": "x".repeat(256)}), "at most 255 characters"),
        ("portgroups", json!({}), "node_uuid: is missing"),
        ("portgroups", json!({"node_uuid": "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11"}), "does not exist"),
        ("portgroups", json!({"node_uuid": node, "address": "x"}), "address"),
        ("portgroups", json!({"node_uuid": node, "name": "a b"}), "name"),
        ("volume/connectors", json!({"node_uuid": node, "type": "iqn"}), "connector_id: is missing"),
        (
            "volume/targets",
            json!({"node_uuid": node, "volume_type": "iscsi", "volume_id": "v", "boot_index": -1}),
            "boot_index: must be a number that is not negative",
        ),
    ] {
        let refused = ask(&stage, Method::POST, &format!("/v1/{path}"), &fields).await;
        assert_eq!(refused.status(), 400, "{path} {fields}");
        let text = fault(refused).await;
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
}

#[tokio::test]
async fn volumes_of_a_machine_that_may_run_are_not_changed() {
    let stage = Stage::new(Script::default()).await;
    stage.change_node(|node| node.power_state = Some(PowerState::On)).await;
    for kind in kinds().into_iter().filter(|kind| kind.path.starts_with("volume")) {
        let made = kind.create(&stage).await;
        let one = format!("/v1/{}/{}", kind.path, uuid(&made));
        let patch = json!([{"op": "add", "path": "/extra/a", "value": 1}]);
        for (method, body) in [(Method::PATCH, &patch), (Method::DELETE, &Value::Null)] {
            let refused = ask(&stage, method.clone(), &one, body).await;
            assert_eq!(refused.status(), 400, "{method} {one}");
            assert!(fault(refused).await.contains("power it off first"));
        }
        let of_node = get(&stage, &format!("/v1/nodes/n1/{}", kind.path)).await;
        assert_eq!(of_node[kind.list].as_array().unwrap().len(), 1);
    }
    // What belongs to a node goes with it.
    stage.change_node(|node| node.power_state = Some(PowerState::Off)).await;
    assert_eq!(ask(&stage, Method::DELETE, "/v1/nodes/n1", &Value::Null).await.status(), 204);
    assert_eq!(get(&stage, "/v1/volume/targets").await["targets"], json!([]));
}

#[tokio::test]
async fn a_chassis_in_which_a_node_is_stays() {
    let stage = Stage::new(Script::default()).await;
    let [chassis, ..] = kinds();
    let made = chassis.create(&stage).await;
    let missing = json!({"/chassis_uuid": "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11"});
    assert_eq!(set(&stage, "n1", &missing).await.status(), 400);
    assert_eq!(set(&stage, "n1", &json!({"/chassis_uuid": made["uuid"]})).await.status(), 200);
    let one = format!("/v1/chassis/{}", uuid(&made));
    for list in [format!("{one}/nodes"), format!("/v1/nodes?chassis_uuid={}", uuid(&made))] {
        assert_eq!(get(&stage, &list).await["nodes"][0]["name"], "n1", "{list}");
    }
    let refused = ask(&stage, Method::DELETE, &one, &Value::Null).await;
    assert_eq!(refused.status(), 400);
    assert!(fault(refused).await.contains("something belongs to it"));
    assert_eq!(set(&stage, "n1", &json!({"/chassis_uuid": null})).await.status(), 200);
    assert_eq!(ask(&stage, Method::DELETE, &one, &Value::Null).await.status(), 204);
}

#[tokio::test]
async fn ports_are_in_groups_of_their_own_node() {
    let stage = Stage::new(Script::default()).await;
    let [_, groups, ..] = kinds();
    let made = groups.create(&stage).await;
    assert_eq!((&made["mode"], &made["standalone_ports_supported"]), (&json!("active-backup"), &json!(true)));
    let port = format!("/v1/ports/{}", stage.node().await.ports[0].uuid);
    let into = |group: &Value| json!([{"op": "add", "path": "/portgroup_uuid", "value": group}]);
    let stranger = into(&json!("1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11"));
    assert_eq!(ask(&stage, Method::PATCH, &port, &stranger).await.status(), 400);
    assert_eq!(ask(&stage, Method::PATCH, &port, &into(&made["uuid"])).await.status(), 200);
    assert_eq!(get(&stage, &port).await["portgroup_uuid"], made["uuid"]);
    for list in ["/v1/ports?portgroup=bond0".to_owned(), "/v1/portgroups/bond0/ports".to_owned()] {
        assert_eq!(get(&stage, &list).await["ports"].as_array().unwrap().len(), 1, "{list}");
    }
    let by_address = get(&stage, "/v1/portgroups?address=52:54:00:00:00:99&node=n1").await;
    assert_eq!(by_address["portgroups"][0]["uuid"], made["uuid"]);
    let group = "/v1/portgroups/bond0";
    assert_eq!(ask(&stage, Method::DELETE, group, &Value::Null).await.status(), 400);
    // While its cards are bound together, none joins or leaves.
    let second = json!({"node_uuid": stage.node().await.uuid, "address": "52:54:00:00:00:98", "portgroup_uuid": made["uuid"]});
    let out = json!([{"op": "remove", "path": "/portgroup_uuid"}]);
    let vif =
        |node: &mut Node| drop(node.ports[0].internal_info.insert("tenant_vif_port_id".into(), json!("v")));
    stage.change_node(vif).await;
    assert_eq!(ask(&stage, Method::POST, "/v1/ports", &second).await.status(), 409);
    assert_eq!(ask(&stage, Method::PATCH, &port, &out).await.status(), 409);
    stage.change_node(|node| node.ports[0].internal_info.clear()).await;
    assert_eq!(ask(&stage, Method::PATCH, &port, &out).await.status(), 200);
    assert_eq!(ask(&stage, Method::DELETE, group, &Value::Null).await.status(), 204);
}
