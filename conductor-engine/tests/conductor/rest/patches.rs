//! Changes of nodes.

use crate::stand_ins::agent::Script;
use crate::stand_ins::operator::{ask, ask_in, get, set};
use crate::stand_ins::stage::{Stage, fault, new_node};
use farrier_conductor::model::ProvisionState;
use farrier_engine::store::{NodeStore, Terms};
use reqwest::Method;
use serde_json::{Value, json};
use time::OffsetDateTime;

#[tokio::test]
async fn a_patch_changes_what_may_be_changed_and_nothing_when_any_of_it_may_not() {
    let stage = Stage::new(Script::default()).await;
    let before = get(&stage, "/v1/nodes/n1").await;
    let op = |op: &str, path: &str, value: Value| match op {
        "remove" => json!({"op": op, "path": path}),
        _ => json!({"op": op, "path": path, "value": value}),
    };
    let add = |path: &str, value: Value| op("add", path, value);
    for (bad, status, part) in [
        (add("/uuid", json!(before["uuid"])), 400, "cannot be set"),
        (add("/provision_state", json!("active")), 400, "cannot be set"),
        (add("/driver_internal_info/a", json!(1)), 400, "cannot be set"),
        (add("/traits", json!(["CUSTOM_A"])), 400, "traits"),
        (add("/nonsense", json!(1)), 400, "no such field"),
        (add("/driver", json!("ipmi")), 400, "use one of: fake"),
        (op("remove", "/driver", json!(null)), 400, "must be a text"),
        (add("/boot_interface", json!("ipxe")), 400, "use one of: fake"),
        (add("/driver_info", json!("x")), 400, "must be an object"),
        (add("/driver_info/a", json!("******")), 400, "secret"),
        (add("/maintenance", json!("maybe")), 400, "true or false"),
        (add("/name", json!("a b")), 400, "name"),
        (add("/protected", json!(true)), 409, "active, rescue"),
        (add("/retired", json!(true)), 409, "available"),
        (add("/protected_reason", json!("why")), 400, "flag"),
        (op("replace", "/extra/none", json!(1)), 400, "nothing at this place"),
        (op("remove", "/extra/none", json!(null)), 400, "nothing at this place"),
        (op("move", "/extra", json!(null)), 400, "JSON"),
        (add("extra", json!({})), 400, "slash"),
        (add("/parent_node", json!(before["uuid"])), 400, "no part of itself"),
    ] {
        let patch = json!([add("/extra/good", json!(1)), bad]);
        let reply = ask(&stage, Method::PATCH, "/v1/nodes/n1", &patch).await;
        assert_eq!(reply.status(), status, "{patch}");
        let text = fault(reply).await;
        assert!(text.contains(part), "{part:?} in {text:?}");
        assert_eq!(get(&stage, "/v1/nodes/n1").await["extra"], json!({}), "{patch}");
    }
    let old =
        ask_in("1.50", &stage, Method::PATCH, "/v1/nodes/n1", &json!([add("/description", json!("x"))]))
            .await;
    assert_eq!(old.status(), 406);

    let patch = json!([
        add("/name", json!("metal3~host")),
        add("/driver_info", json!({"fake_password": "hunter2", "deploy_kernel": "/k"})),
        add("/driver_info/with~1slash~0", json!(1)),
        add("/properties/cpu_arch", json!("x86_64")),
        add("/instance_info/capabilities", json!({"boot_option": "local"})),
        add("/automated_clean", json!("false")),
        add("/conductor_group", json!("Rack-7")),
        add("/resource_class", json!("baremetal")),
        add("/maintenance", json!(true)),
        op("remove", "/deploy_interface", json!(null)),
        op("remove", "/description", json!(null)),
        op("test", "/driver", json!("fake")),
    ]);
    let reply = ask(&stage, Method::PATCH, "/v1/nodes/n1", &patch).await;
    assert_eq!(reply.status(), 200);
    let after: Value = reply.json().await.unwrap();
    assert_eq!(after, get(&stage, "/v1/nodes/metal3~host").await);
    let info = json!({"fake_password": "******", "deploy_kernel": "/k", "with/slash~": 1});
    assert_eq!(after["driver_info"], info);
    for (field, value) in [
        ("automated_clean", json!(false)),
        ("conductor_group", json!("rack-7")),
        ("resource_class", json!("baremetal")),
        ("maintenance", json!(true)),
        ("deploy_interface", json!("direct")),
        ("instance_info", json!({"capabilities": {"boot_option": "local"}})),
    ] {
        assert_eq!(after[field], value, "{field}");
    }
    // What was not touched is still what it was, behind its mask too.
    assert_eq!(set(&stage, "metal3~host", &json!({"/driver_info/more": 2})).await.status(), 200);
    let stored = stage.store.by_name("metal3~host").await.unwrap().unwrap().node;
    assert_eq!(stored.driver_info["fake_password"], "hunter2");
    assert_eq!(stored.ports.len(), 1);
}

#[tokio::test]
async fn an_instance_is_set_or_removed_and_its_config_drive_is_kept_apart() {
    let stage = Stage::new(Script::default()).await;
    let (one, other) = ("1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11", "2f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11");
    let instance =
        async |uuid: &str| set(&stage, "n1", &json!({"/instance_uuid": uuid})).await.status().as_u16();
    assert_eq!([instance(one).await, instance(one).await, instance(other).await], [200, 200, 409]);
    let removal = json!([{"op": "remove", "path": "/instance_uuid"}]);
    assert_eq!(ask(&stage, Method::PATCH, "/v1/nodes/n1", &removal).await.status(), 200);
    assert_eq!(instance(other).await, 200);
    stage.conductor.create_node(new_node("n2", "52:54:00:00:00:02")).await.unwrap();
    assert_eq!(set(&stage, "n2", &json!({"/instance_uuid": other})).await.status(), 409);

    let uuid = stage.node().await.uuid;
    for (values, kept) in [
        (json!({"/instance_info": {"configdrive": "H4sI", "display_name": "web"}}), Some("H4sI")),
        (json!({"/instance_info/image_source": "http://h/i"}), Some("H4sI")),
        (json!({"/instance_info/configdrive": "AAAA"}), Some("AAAA")),
        (json!({"/instance_info": {}}), None),
    ] {
        assert_eq!(set(&stage, "n1", &values).await.status(), 200, "{values}");
        assert_eq!(stage.store.config_drive(uuid).await.unwrap().as_deref(), kept, "{values}");
        let node = get(&stage, "/v1/nodes/n1").await;
        assert_eq!(node["instance_info"]["configdrive"] == "******", kept.is_some(), "{values}");
        assert_eq!(node["instance_name"], "web", "{values}");
    }
    // What is said of the name itself counts for more.
    let named = json!({"/instance_name": "shop", "/instance_info": {"display_name": "web"}});
    assert_eq!(set(&stage, "n1", &named).await.status(), 200);
    assert_eq!(set(&stage, "n1", &json!({"/instance_info": {"display_name": "mail"}})).await.status(), 200);
    assert_eq!(get(&stage, "/v1/nodes/n1").await["instance_name"], "shop");
}

#[tokio::test]
async fn a_node_that_is_locked_or_under_way_is_not_changed() {
    let stage = Stage::new(Script::default()).await;
    let uuid = stage.node().await.uuid;
    let now = OffsetDateTime::now_utc();
    let terms = Terms { holder: "another", now, expires_at: now + time::Duration::MINUTE };
    let (lease, _) = stage.store.take(uuid, &terms).await.unwrap();
    let port = format!("/v1/ports/{}", stage.node().await.ports[0].uuid);
    let new_port = json!({"node_uuid": uuid, "address": "52:54:00:00:00:07"});
    let patch = json!([{"op": "add", "path": "/extra/a", "value": 1}]);
    for (method, path, body) in [
        (Method::PATCH, "/v1/nodes/n1", &patch),
        (Method::DELETE, "/v1/nodes/n1", &Value::Null),
        (Method::POST, "/v1/ports", &new_port),
        (Method::PATCH, &port, &patch),
        (Method::DELETE, &port, &Value::Null),
        (Method::PUT, "/v1/nodes/n1/maintenance", &json!({})),
        (Method::PUT, "/v1/nodes/n1/traits", &json!({"traits": []})),
        (Method::PUT, "/v1/nodes/n1/states/provision", &json!({"target": "manage"})),
    ] {
        let reply = ask(&stage, method.clone(), path, body).await;
        assert_eq!(reply.status(), 409, "{method} {path}");
        assert!(fault(reply).await.contains("locked by another"), "{method} {path}");
    }
    stage.store.release(&lease).await.unwrap();
    stage.change_node(|node| node.provision_state = ProvisionState::DeployHold).await;
    assert_eq!(ask(&stage, Method::PATCH, "/v1/nodes/n1", &patch).await.status(), 409);
    assert_eq!(ask(&stage, Method::DELETE, "/v1/nodes/n1", &Value::Null).await.status(), 409);
    // Whoever looks after a machine in maintenance may forget it.
    stage.change_node(|node| node.maintenance = true).await;
    assert_eq!(ask(&stage, Method::DELETE, "/v1/nodes/n1", &Value::Null).await.status(), 204);
}
