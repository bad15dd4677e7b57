//! What operators call: nodes, their states and their power.

use crate::stand_ins::agent::Script;
use crate::stand_ins::operator::{NEWEST, ask, ask_in, get, set};
use crate::stand_ins::stage::{Stage, fault, image};
use farrier_conductor::EventKind;
use farrier_conductor::model::ProvisionState;
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn nodes_are_enrolled_listed_shown_and_deleted() {
    let stage = Stage::new(Script::default()).await;
    let new = json!({"name": "n2", "driver": "fake", "driver_info": {"fake_password": "hunter2"}});
    let reply = ask(&stage, Method::POST, "/v1/nodes", &new).await;
    assert_eq!(reply.status(), 201);
    let place = reply.headers()["location"].to_str().unwrap().to_owned();
    let node: Value = reply.json().await.unwrap();
    assert_eq!(place, format!("{}/v1/nodes/{}", stage.node_api, node["uuid"].as_str().unwrap()));
    assert_eq!(node["provision_state"], "enroll");
    assert_eq!(node["driver_info"]["fake_password"], "******");
    let list = get(&stage, "/v1/nodes?sort_key=name").await;
    let names: Vec<_> = list["nodes"].as_array().unwrap().iter().map(|node| node["name"].clone()).collect();
    assert_eq!(names, ["n1", "n2"]);
    let uuid = node["uuid"].as_str().unwrap();
    for path in ["/v1/nodes/n2".to_owned(), format!("/v1/nodes/{uuid}")] {
        assert_eq!(ask(&stage, Method::GET, &path, &Value::Null).await.status(), 200, "{path}");
    }
    assert_eq!(ask(&stage, Method::DELETE, "/v1/nodes/n2", &Value::Null).await.status(), 204);
    let gone = ask(&stage, Method::GET, "/v1/nodes/n2", &Value::Null).await;
    assert_eq!(gone.status(), 404);
    assert!(fault(gone).await.contains("n2"));
}

#[tokio::test]
async fn unusable_nodes_are_refused_with_the_reason() {
    let stage = Stage::new(Script::default()).await;
    let usable = json!({"name": "n2", "driver": "fake"});
    for (field, value, status, part) in [
        ("name", json!("a b"), 400, "name"),
        ("name", json!("n1"), 409, "n1"),
        ("driver", json!("ipmi"), 400, "fake"),
        ("ports", json!([]), 400, "ports cannot be set"),
        ("nonsense", json!(1), 400, "no such field"),
        ("provision_state", json!("active"), 400, "cannot be set"),
        ("uuid", json!("x"), 400, "UUID"),
        ("boot_interface", json!("none"), 400, "use one of: fake"),
        ("conductor_group", json!("a b"), 400, "conductor_group"),
        ("parent_node", json!("1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11"), 400, "does not exist"),
        ("instance_info", json!({"configdrive": "H4sI"}), 400, "order to deploy"),
        ("driver_info", json!("text"), 400, "must be an object"),
        // Nodes of the first versions are ready at once, and so looked at first.
        ("driver_info", json!({"fake_broken": "yes"}), 400, "fake_broken"),
    ] {
        let mut body = usable.clone();
        let version = if value == json!({"fake_broken": "yes"}) { "1.10" } else { NEWEST };
        body[field] = value;
        let reply = ask_in(version, &stage, Method::POST, "/v1/nodes", &body).await;
        assert_eq!(reply.status(), status, "{body}");
        let text = fault(reply).await;
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
}

#[tokio::test]
async fn a_deployment_is_ordered_and_followed() {
    let stage = Stage::new(Script::default()).await;
    assert_eq!(set(&stage, "n1", &json!({"/instance_info": image()})).await.status(), 200);
    let reply = ask(&stage, Method::PUT, "/v1/nodes/n1/states/provision", &json!({"target": "active"})).await;
    assert_eq!(reply.status(), 202);
    let place = reply.headers()["location"].to_str().unwrap().to_owned();
    assert!(place.ends_with("/states"), "{place}");
    stage.wait_for(ProvisionState::Active).await;
    stage.until(|events| events.last().is_some_and(|event| event.kind == EventKind::Active)).await;
    let events = get(&stage, "/farrier/v1/nodes/n1/events?since=0").await;
    let events = events["events"].as_array().unwrap();
    assert_eq!(events[0]["event"], "power_on");
    assert_eq!(events.last().unwrap()["event"], "active");
    let later = format!("/farrier/v1/nodes/n1/events?since={}", events.last().unwrap()["sequence"]);
    let last = get(&stage, &later).await;
    assert_eq!(last["events"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn bad_orders_are_refused_and_change_nothing() {
    let stage = Stage::new(Script::default()).await;
    for (info, part) in [
        (json!({"image_source": "http://h/i"}), "image_checksum"),
        (json!({"image_source": "/etc/passwd"}), "image_source"),
    ] {
        assert_eq!(set(&stage, "n1", &json!({"/instance_info": info})).await.status(), 200);
        let order = json!({"target": "active"});
        let reply = ask(&stage, Method::PUT, "/v1/nodes/n1/states/provision", &order).await;
        assert_eq!(reply.status(), 400);
        let text = fault(reply).await;
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
    for (path, body, status, part) in [
        ("/v1/nodes/n1/states/provision", &json!({"target": "fly"}), 400, "active"),
        ("/v1/nodes/n1/states/provision", &json!({"target": "deleted"}), 400, "available"),
        ("/v1/nodes/n1/states/provision", &json!({"target": "abort"}), 400, "available"),
        ("/v1/nodes/n1/states/provision", &json!({"target": "clean", "clean_steps": []}), 400, "available"),
        ("/v1/nodes/n1/states/provision", &json!({"target": "clean", "steps": []}), 400, "unknown field"),
        ("/v1/nodes/n1/states/provision", &json!({"target": "manage", "clean_steps": []}), 400, "belong"),
        (
            "/v1/nodes/n1/states/provision",
            &json!({"target": "active", "disable_ramdisk": true}),
            400,
            "belong",
        ),
        ("/v1/nodes/n1/states/provision", &json!([]), 400, "JSON"),
        ("/v1/nodes/n1/states/power", &json!({"target": "up"}), 400, "power on"),
        ("/v1/nodes/none/states/power", &json!({"target": "power on"}), 404, "none"),
    ] {
        let reply = ask(&stage, Method::PUT, path, body).await;
        assert_eq!(reply.status(), status, "{path} {body}");
        let text = fault(reply).await;
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
    let node = stage.node().await;
    assert_eq!(node.provision_state, ProvisionState::Available);
    assert!(stage.machine.power_ons().is_empty());
}

#[tokio::test]
async fn power_follows_the_orders() {
    let stage = Stage::new(Script::default()).await;
    for (target, power) in [("power on", "power on"), ("rebooting", "power on"), ("power off", "power off")] {
        let body = json!({"target": target});
        let reply = ask(&stage, Method::PUT, "/v1/nodes/n1/states/power", &body).await;
        assert_eq!(reply.status(), 202);
        assert_eq!(stage.idle().await.power_state.unwrap().as_str(), power);
    }
    assert_eq!(stage.machine.power_ons().len(), 2);
}

#[tokio::test]
async fn the_verbs_of_the_provision_api_lead_a_node_through_its_life() {
    let stage = Stage::new(Script::default()).await;
    let steps = json!([{"interface": "deploy", "step": "erase_devices"}]);
    let hold = json!([{"interface": "power", "step": "hold"}]);
    let deploy_steps = json!([{"interface": "power", "step": "wait", "args": {}, "priority": 90}]);
    for (body, state) in [
        (json!({"target": "manage"}), ProvisionState::Manageable),
        (json!({"target": "clean", "clean_steps": hold}), ProvisionState::CleanHold),
        (json!({"target": "unhold"}), ProvisionState::Manageable),
        (json!({"target": "clean", "clean_steps": hold, "disable_ramdisk": true}), ProvisionState::CleanHold),
        (json!({"target": "abort"}), ProvisionState::CleanFailed),
        (json!({"target": "manage"}), ProvisionState::Manageable),
        (json!({"target": "provide"}), ProvisionState::Available),
        (json!({"target": "active", "deploy_steps": deploy_steps}), ProvisionState::Active),
        (json!({"target": "rebuild", "configdrive": {"meta_data": {"a": 1}}}), ProvisionState::Active),
        (json!({"target": "service", "service_steps": hold}), ProvisionState::ServiceHold),
        (json!({"target": "abort"}), ProvisionState::Active),
        (json!({"target": "deleted"}), ProvisionState::Available),
    ] {
        if ["active", "rebuild"].contains(&body["target"].as_str().unwrap()) {
            assert_eq!(set(&stage, "n1", &json!({"/instance_info": image()})).await.status(), 200);
        }
        let reply = ask(&stage, Method::PUT, "/v1/nodes/n1/states/provision", &body).await;
        assert_eq!(reply.status(), 202, "{body}");
        stage.wait_for(state).await;
    }
    for (method, is_on) in [(Method::PUT, true), (Method::DELETE, false)] {
        let reply = ask(&stage, method, "/v1/nodes/n1/maintenance", &json!({"reason": "a fan"})).await;
        assert_eq!((reply.status().as_u16(), stage.node().await.maintenance), (202, is_on));
    }
    stage.manageable().await;
    let body = json!({"target": "service", "service_steps": steps});
    let reply = ask(&stage, Method::PUT, "/v1/nodes/n1/states/provision", &body).await;
    assert_eq!(reply.status(), 400);
    assert!(fault(reply).await.contains("active, service hold, service failed"));
    assert_eq!(ask(&stage, Method::DELETE, "/v1/nodes/n1", &Value::Null).await.status(), 204);
    assert_eq!(ask(&stage, Method::GET, "/v1/nodes/n1", &Value::Null).await.status(), 404);
}
