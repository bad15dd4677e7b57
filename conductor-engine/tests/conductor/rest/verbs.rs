//! Verbs, with what they cannot do without, and everything that is described.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::FakeMachine;
use crate::stand_ins::operator::{NEWEST, ask, ask_in, set};
use crate::stand_ins::stage::{Stage, image, quick};
use farrier_conductor::model::{Event, NewNode, Node, ProvisionState};
use farrier_engine::store::NodeStore;
use farrier_engine::store::sqlite::SqliteStore;
use farrier_node_api::nodes::nodes_router;
use farrier_node_api::reference::{ROUTES, Route};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use time::OffsetDateTime;
use tokio::net::TcpListener;

/// The documents tell of nothing that is not there.
#[tokio::test]
async fn every_request_that_is_described_is_answered() {
    let stage = Stage::new(Script::default()).await;
    let port = stage.node().await.ports[0].uuid.to_string();
    for Route { method, path, since, .. } in ROUTES {
        let conductor = &stage.conductor.settings().conductor_name;
        let mut asked =
            path.replace("{port}", &port).replace("{conductor}", conductor).replace("{driver}", "fake");
        asked = asked
            .replace("{allocation}", "none")
            .replace("{trait}", "CUSTOM_A")
            .replace("{vif}", "vif")
            .replace("{node}", "n1");
        let method: Method = method.parse().unwrap();
        // Where a body is needed, there is none: so nothing is changed.
        let changes = method == Method::DELETE && !path.contains("vif");
        let asked = if changes { asked.replace("n1", "none").replace(&port, "none") } else { asked };
        let reply = ask_in(NEWEST, &stage, method.clone(), &format!("/v1{asked}"), &Value::Null).await;
        let status = reply.status().as_u16();
        let text = reply.text().await.unwrap();
        assert!(status != 405 && !text.contains("no such resource"), "{method} {path}: {status} {text}");
        if *since > 1 && method == Method::GET {
            let before = format!("1.{}", since - 1);
            let reply = ask_in(&before, &stage, method, &format!("/v1{asked}"), &Value::Null).await;
            // As Ironic has it (K08).
            let is_old = path.ends_with("/traits") || path.ends_with("/logical_disk_properties");
            let expected = if is_old { 406 } else { 404 };
            assert_eq!(reply.status(), expected, "{path} before 1.{since}");
        }
    }
}

/// The verbs of section 1.2, with the arguments they cannot do without.
fn verbs() -> Vec<(Event, Value)> {
    let steps = json!([{"interface": "deploy", "step": "erase_devices"}]);
    vec![
        (Event::Deploy, json!({"target": "active"})),
        (Event::Deploy, json!({"target": "deploy"})),
        (Event::Rebuild, json!({"target": "rebuild"})),
        (Event::Delete, json!({"target": "deleted"})),
        (Event::Delete, json!({"target": "undeploy"})),
        (Event::Manage, json!({"target": "manage"})),
        (Event::Provide, json!({"target": "provide"})),
        (Event::Clean, json!({"target": "clean", "clean_steps": steps})),
        (Event::Service, json!({"target": "service", "service_steps": steps})),
        (Event::Adopt, json!({"target": "adopt"})),
        (Event::Abort, json!({"target": "abort"})),
        (Event::Unhold, json!({"target": "unhold"})),
    ]
}

/// A conductor that takes orders and looks after nothing, so that a node stays in the state it is put in.
#[tokio::test]
async fn every_verb_is_taken_in_its_states_and_refused_without_a_change_in_all_others() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap());
    let machine = FakeMachine::new(Script { silent: true, ..Script::default() });
    let conductor = machine.conductor(quick("http://127.0.0.1:1"), store.clone()).start().await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/nodes", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, nodes_router(conductor)).into_future());
    let http = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
    let _nothing_moves = machine.power_off.lock().await;
    for state in ProvisionState::ALL.iter().copied() {
        for (event, body) in verbs() {
            let new = NewNode { driver: "fake".into(), ..NewNode::default() };
            let mut node = Node::enrol(new, OffsetDateTime::UNIX_EPOCH);
            (node.provision_state, node.instance_info) = (state, image());
            node.instance_info.remove("configdrive");
            store.create(&node).await.unwrap();
            let order = http.put(format!("{url}/{}/states/provision", node.uuid)).json(&body);
            let reply = order.header("X-OpenStack-Ironic-API-Version", NEWEST).send().await.unwrap();
            let (status, text) = (reply.status().as_u16(), reply.text().await.unwrap());
            let after = store.get(node.uuid).await.unwrap().unwrap();
            if state.takes_verb(event) {
                assert_eq!(status, 202, "{state} {body}: {text}");
                assert!(after.node.provision_state != state || after.order.is_some(), "{state} {body}");
            } else {
                assert_eq!(status, 400, "{state} {body}: {text}");
                assert!(text.contains("needs one of"), "{state} {body}: {text}");
                assert_eq!(Node { reservation: None, ..after.node }, node, "{state} {body}");
                assert_eq!(after.order, None, "{state} {body}");
            }
        }
    }
}

#[tokio::test]
async fn verbs_and_arguments_are_there_from_their_versions_on() {
    let stage = Stage::new(Script::default()).await;
    let path = "/v1/nodes/n1/states/provision";
    let steps = json!([{"interface": "deploy", "step": "x"}]);
    for (body, since) in [
        (json!({"target": "manage"}), 4),
        (json!({"target": "provide"}), 4),
        (json!({"target": "abort"}), 13),
        (json!({"target": "clean", "clean_steps": steps}), 15),
        (json!({"target": "adopt"}), 17),
        (json!({"target": "rescue", "rescue_password": "p"}), 38),
        (json!({"target": "rebuild", "configdrive": "H4sI"}), 35),
        (json!({"target": "active", "configdrive": {"meta_data": {}}}), 56),
        (json!({"target": "active", "configdrive": {"vendor_data": {}}}), 59),
        (json!({"target": "active", "deploy_steps": []}), 69),
        (json!({"target": "clean", "clean_steps": steps, "disable_ramdisk": true}), 70),
        (json!({"target": "deploy"}), 73),
        (json!({"target": "undeploy"}), 73),
        (json!({"target": "unhold"}), 85),
        (json!({"target": "service", "service_steps": steps}), 87),
        (json!({"target": "service", "service_steps": steps, "disable_ramdisk": true}), 108),
    ] {
        let before = ask_in(&format!("1.{}", since - 1), &stage, Method::PUT, path, &body).await;
        assert_eq!(before.status(), 406, "{body} before 1.{since}");
    }
    stage.change_node(|node| node.maintenance = true).await;
    stage.change_node(|node| node.provision_state = ProvisionState::DeployWait).await;
    let abort = ask_in("1.109", &stage, Method::PUT, path, &json!({"target": "abort"})).await;
    assert_eq!(abort.status(), 406);
    let abort = ask(&stage, Method::PUT, path, &json!({"target": "abort"})).await;
    assert_eq!(abort.status(), 202);
    // By this word clients tell an abort from a failure.
    let node = stage.wait_for(ProvisionState::DeployFailed).await;
    assert!(node.last_error.unwrap().contains("aborted"));
}

#[tokio::test]
async fn of_two_clients_that_deploy_one_node_one_does() {
    let stage = Stage::new(Script::default()).await;
    assert_eq!(set(&stage, "n1", &json!({"/instance_info": image()})).await.status(), 200);
    let order = json!({"target": "active"});
    let both = [(); 2].map(|()| ask(&stage, Method::PUT, "/v1/nodes/n1/states/provision", &order));
    let [one, other] = both;
    let (one, other) = tokio::join!(one, other);
    let mut statuses = [one.status().as_u16(), other.status().as_u16()];
    statuses.sort_unstable();
    assert!(statuses == [202, 409] || statuses == [202, 400], "{statuses:?}");
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(stage.machine.power_ons().len(), 2, "the ramdisk once, and the instance once");
}
