//! Ironic's REST interface: versions, fields, patches, lists, ports and limits, as clients see them.

use crate::agent::Script;
use crate::machine::FakeMachine;
use crate::node_api::{NEWEST, ask, ask_in, get, set};
use crate::stage::{PATIENCE, Stage, fault, image, new_node, quick};
use farrier_conductor::api::nodes::nodes_router;
use farrier_conductor::api::reference::{ROUTES, Route};
use farrier_conductor::model::{Event, NewNode, Node, ProvisionState};
use farrier_conductor::store::sqlite::SqliteStore;
use farrier_conductor::store::{Store, Terms};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use time::OffsetDateTime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The fields of a node and the version that brought each, as Ironic documents them.
const FIELDS: &[(&str, u16)] = &[
    ("uuid", 1),
    ("driver", 1),
    ("driver_info", 1),
    ("properties", 1),
    ("instance_info", 1),
    ("instance_uuid", 1),
    ("chassis_uuid", 1),
    ("extra", 1),
    ("provision_state", 1),
    ("target_provision_state", 1),
    ("provision_updated_at", 1),
    ("power_state", 1),
    ("target_power_state", 1),
    ("last_error", 1),
    ("maintenance", 1),
    ("maintenance_reason", 1),
    ("console_enabled", 1),
    ("reservation", 1),
    ("created_at", 1),
    ("updated_at", 1),
    ("links", 1),
    ("ports", 1),
    ("driver_internal_info", 3),
    ("name", 5),
    ("inspection_started_at", 6),
    ("inspection_finished_at", 6),
    ("clean_step", 7),
    ("raid_config", 12),
    ("target_raid_config", 12),
    ("states", 14),
    ("network_interface", 20),
    ("resource_class", 21),
    ("portgroups", 24),
    ("boot_interface", 31),
    ("console_interface", 31),
    ("deploy_interface", 31),
    ("inspect_interface", 31),
    ("management_interface", 31),
    ("power_interface", 31),
    ("raid_interface", 31),
    ("vendor_interface", 31),
    ("volume", 32),
    ("storage_interface", 33),
    ("traits", 37),
    ("rescue_interface", 38),
    ("bios_interface", 40),
    ("fault", 42),
    ("deploy_step", 44),
    ("conductor_group", 46),
    ("automated_clean", 47),
    ("protected", 48),
    ("protected_reason", 48),
    ("conductor", 49),
    ("owner", 50),
    ("description", 51),
    ("allocation_uuid", 52),
    ("retired", 61),
    ("retired_reason", 61),
    ("lessee", 65),
    ("network_data", 66),
    ("boot_mode", 75),
    ("secure_boot", 75),
    ("shard", 82),
    ("parent_node", 83),
    ("firmware_interface", 86),
    ("service_step", 87),
    ("disable_power_off", 95),
    ("instance_name", 104),
    ("health", 109),
];

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn names(list: &Value) -> Vec<&str> {
    list["nodes"].as_array().unwrap().iter().map(|node| node["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn each_version_has_its_fields_and_no_other() {
    let stage = Stage::new(Script::default()).await;
    for minor in 1..=110 {
        let version = format!("1.{minor}");
        let reply = ask_in(&version, &stage, Method::GET, "/v1/nodes/n1", &Value::Null).await;
        let node: Value = reply.json().await.unwrap();
        let expected: BTreeSet<_> =
            FIELDS.iter().filter(|(_, since)| *since <= minor).map(|(name, _)| *name).collect();
        assert_eq!(keys(&node), expected, "{version}");
        assert_eq!(node["provision_state"].is_null(), minor < 2, "{version}");
    }
    for (name, since) in FIELDS.iter().filter(|(_, since)| *since > 8) {
        let path = format!("/v1/nodes/n1?fields={name}");
        for (minor, status) in [(since - 1, 406), (*since, 200)] {
            let reply = ask_in(&format!("1.{minor}"), &stage, Method::GET, &path, &Value::Null).await;
            assert_eq!(reply.status(), status, "{name} 1.{minor}");
        }
    }
}

#[tokio::test]
async fn every_answer_has_the_versions_and_a_request_id() {
    let stage = Stage::new(Script::default()).await;
    let mut ids = BTreeSet::new();
    for (version, path, status) in [
        (NEWEST, "/", 200),
        (NEWEST, "/v1", 200),
        ("1.1", "/v1/nodes/n1", 200),
        ("1.58", "/v1/nodes/none", 404),
        (NEWEST, "/v1/nonsense", 404),
        ("1.111", "/v1/nodes", 406),
        ("nonsense", "/v1/nodes", 406),
        (NEWEST, "/v1/nodes?nonsense=1", 400),
    ] {
        let reply = ask_in(version, &stage, Method::GET, path, &Value::Null).await;
        assert_eq!(reply.status(), status, "{version} {path}");
        let headers = reply.headers().clone();
        let used = if status == 406 { "1.1" } else { version };
        for (name, expected) in [("minimum-version", "1.1"), ("maximum-version", NEWEST), ("version", used)] {
            let name = match name {
                "version" => "x-openstack-ironic-api-version".to_owned(),
                name => format!("x-openstack-ironic-api-{name}"),
            };
            assert_eq!(headers[&name], expected, "{version} {path} {name}");
        }
        let id = headers["x-openstack-request-id"].to_str().unwrap().to_owned();
        assert!(id.starts_with("req-") && id.len() == 40 && ids.insert(id), "{path}");
        if status == 406 {
            let body: Value = reply.json().await.unwrap();
            let inner: Value = serde_json::from_str(body["error_message"].as_str().unwrap()).unwrap();
            assert_eq!((&inner["code"], inner["title"].is_string()), (&json!(406), true), "{inner}");
            assert!(inner["description"].as_str().unwrap().contains("1.1"), "{inner}");
        }
    }
    let versions = get(&stage, "/v1").await;
    assert_eq!((&versions["id"], &versions["version"]["version"]), (&json!("v1"), &json!(NEWEST)));
    assert_eq!(get(&stage, "/").await["versions"][0]["status"], "CURRENT");
}

#[tokio::test]
async fn paths_have_four_spellings_and_names_any_letter() {
    let stage = Stage::new(Script::default()).await;
    for path in ["/v1/nodes/n1", "/v1/nodes/n1/", "/nodes/n1", "/nodes/n1/", "/v1/nodes/n1/?fields=name"] {
        assert_eq!(get(&stage, path).await["name"], "n1", "{path}");
    }
    for name in ["a~b", "rack.7", "n2.json", &"x".repeat(255)] {
        let reply = ask(&stage, Method::POST, "/v1/nodes", &json!({"driver": "fake", "name": name})).await;
        assert_eq!(reply.status(), 201, "{name}");
        assert_eq!(get(&stage, &format!("/v1/nodes/{name}")).await["name"], *name);
    }
    let long = "x".repeat(4096);
    for name in ["a/b", "..", "detail", "", &long] {
        let reply = ask(&stage, Method::POST, "/v1/nodes", &json!({"driver": "fake", "name": name})).await;
        assert_eq!(reply.status(), 400, "{name}");
    }
    for name in ["a%2Fb", "%2e%2e%2fn1", &long, "%00", "n1%2Fstates"] {
        let reply = ask(&stage, Method::GET, &format!("/v1/nodes/{name}"), &Value::Null).await;
        assert_eq!(reply.status(), 404, "{name}");
    }
    let nameless = ask(&stage, Method::POST, "/v1/nodes", &json!({"driver": "fake"})).await;
    let nameless: Value = nameless.json().await.unwrap();
    assert_eq!(nameless["name"], Value::Null);
    assert_eq!(get(&stage, &format!("/v1/nodes/{}", nameless["uuid"].as_str().unwrap())).await, nameless);
}

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

#[tokio::test]
async fn lists_are_filtered_sorted_and_gone_through() {
    let stage = Stage::new(Script::default()).await;
    for number in 2..8 {
        let name = format!("n{number}");
        let class = if number % 2 == 0 { "even" } else { "odd" };
        let body =
            json!({"driver": "fake", "name": name, "resource_class": class, "owner": "o", "shard": "s"});
        assert_eq!(ask(&stage, Method::POST, "/v1/nodes", &body).await.status(), 201);
    }
    set(&stage, "n3", &json!({"/parent_node": get(&stage, "/v1/nodes/n1").await["uuid"]})).await;
    for (query, expected) in [
        ("", "n1 n2 n4 n5 n6 n7"),
        ("include_children=true", "n1 n2 n3 n4 n5 n6 n7"),
        ("resource_class=even", "n2 n4 n6"),
        ("resource_class=odd&include_children=True", "n3 n5 n7"),
        ("provision_state=available", "n1"),
        ("provision_state=enroll&sort_key=name&sort_dir=desc", "n7 n6 n5 n4 n2"),
        ("maintenance=true", ""),
        ("associated=false&limit=2", "n1 n2"),
        ("sharded=false", "n1"),
        ("shard=s,t&limit=1", "n2"),
        ("driver=none", ""),
        ("conductor=nobody", ""),
        ("limit=0", "n1 n2 n4 n5 n6 n7"),
        ("detail=true&owner=o&limit=1", "n2"),
    ] {
        let list = get(&stage, &format!("/v1/nodes?{query}")).await;
        let separate: Vec<_> = expected.split(' ').filter(|name| !name.is_empty()).collect();
        assert_eq!(names(&list), separate, "{query}");
    }
    let parent =
        format!("/v1/nodes?parent_node={}", get(&stage, "/v1/nodes/n1").await["uuid"].as_str().unwrap());
    assert_eq!(names(&get(&stage, &parent).await), ["n3"]);
    for (query, status) in [
        ("provision_state=flying", 400),
        ("fault=toothache", 400),
        ("sort_key=extra", 400),
        ("sort_dir=up", 400),
        ("limit=-1", 400),
        ("maintenance=maybe", 400),
        ("fields=uuid,nonsense", 400),
        ("fields=uuid&detail=true", 400),
        ("nonsense=1", 400),
        ("marker=none", 404),
    ] {
        let reply = ask(&stage, Method::GET, &format!("/v1/nodes?{query}"), &Value::Null).await;
        assert_eq!(reply.status(), status, "{query}");
    }
    for (query, version) in [("fields=uuid", "1.7"), ("owner=o", "1.49"), ("detail=true", "1.42")] {
        let reply = ask_in(version, &stage, Method::GET, &format!("/v1/nodes?{query}"), &Value::Null).await;
        assert_eq!(reply.status(), 406, "{query}");
    }
    let brief = get(&stage, "/v1/nodes?limit=1").await;
    let expected =
        ["instance_uuid", "links", "maintenance", "name", "power_state", "provision_state", "uuid"];
    assert_eq!(keys(&brief["nodes"][0]), BTreeSet::from(expected));
    let busy = get(&stage, "/v1/nodes?fields=uuid,name,provision_state,boot_interface").await;
    assert_eq!(busy["nodes"][0]["boot_interface"], "fake");
    assert_eq!(keys(&busy["nodes"][0]).len(), 4);
    assert_eq!(keys(&get(&stage, "/v1/nodes/detail?limit=1").await["nodes"][0]).len(), FIELDS.len());

    // The next part is found by its link, until a node that it begins after is gone.
    let mut found = Vec::new();
    let mut link = Some(format!("{}/v1/nodes?fields=uuid,name&limit=2&sort_key=name", stage.node_api));
    while let Some(url) = link {
        let path = url.strip_prefix(&stage.node_api).unwrap().to_owned();
        let part = get(&stage, &path).await;
        found.extend(names(&part).into_iter().map(str::to_owned));
        link = part["next"].as_str().map(str::to_owned);
    }
    assert_eq!(found, ["n1", "n2", "n4", "n5", "n6", "n7"]);
    let part = get(&stage, "/v1/nodes?limit=2").await;
    assert_eq!(ask(&stage, Method::DELETE, "/v1/nodes/n2", &Value::Null).await.status(), 204);
    let next = part["next"].as_str().unwrap().strip_prefix(&stage.node_api).unwrap();
    assert_eq!(ask(&stage, Method::GET, next, &Value::Null).await.status(), 404);
}

/// Clients that know no links see all nodes, though the conductor reads them in parts.
#[tokio::test]
async fn a_list_without_a_limit_is_answered_in_full() {
    let stage = Stage::new(Script::default()).await;
    for number in 0..1100 {
        let new = NewNode { driver: "fake".into(), ..NewNode::default() };
        let mut node = Node::enrol(new, OffsetDateTime::UNIX_EPOCH);
        node.extra.insert("number".into(), json!(number));
        stage.store.create(&node).await.unwrap();
    }
    for path in ["/v1/nodes", "/v1/nodes/detail", "/v1/nodes?fields=uuid,extra&sort_key=uuid&sort_dir=desc"] {
        let list = get(&stage, path).await;
        let list = list["nodes"].as_array().unwrap();
        let different: BTreeSet<_> = list.iter().map(|node| node["uuid"].as_str().unwrap()).collect();
        assert_eq!((list.len(), different.len()), (1101, 1101), "{path}");
    }
    let limited = get(&stage, "/v1/nodes/detail?limit=250").await;
    assert_eq!(limited["nodes"].as_array().unwrap().len(), 250);
    assert!(limited["next"].as_str().unwrap().contains("/v1/nodes/detail?limit=250&marker="));
}

#[tokio::test]
async fn ports_are_created_found_changed_and_deleted_by_themselves() {
    let stage = Stage::new(Script::default()).await;
    let n1 = get(&stage, "/v1/nodes/n1").await["uuid"].clone();
    let new = json!({
        "node_uuid": n1, "address": "52-54-00-00-00-0A", "name": "left", "pxe_enabled": "false", "extra": {"a": 1},
        "local_link_connection": {"switch_id": "0a:1b"}, "physical_network": "rack1", "category": "fast",
    });
    let reply = ask(&stage, Method::POST, "/v1/ports", &new).await;
    assert_eq!(reply.status(), 201);
    let port: Value = reply.json().await.unwrap();
    let path = format!("/v1/ports/{}", port["uuid"].as_str().unwrap());
    for (field, value) in [
        ("address", json!("52:54:00:00:00:0a")),
        ("pxe_enabled", json!(false)),
        ("node_uuid", n1.clone()),
        ("portgroup_uuid", json!(null)),
        ("is_smartnic", json!(false)),
        ("internal_info", json!({})),
        ("updated_at", json!(null)),
    ] {
        assert_eq!(port[field], value, "{field}");
    }
    for path in [path.as_str(), "/v1/ports/left", "/ports/left/"] {
        assert_eq!(get(&stage, path).await, port, "{path}");
    }
    let wanted = "fields=node_uuid,uuid,address";
    for (query, count) in [
        (format!("/v1/ports?{wanted}"), 2),
        (format!("/v1/ports/?{wanted}&node_uuid={}", n1.as_str().unwrap()), 2),
        (format!("/v1/ports?{wanted}&address=52:54:00:00:00:0A"), 1),
        (format!("/v1/ports?{wanted}&address=52:54:00:00:00:0b"), 0),
        (format!("/v1/ports?{wanted}&node=n1&limit=1"), 1),
        ("/v1/ports/detail".to_owned(), 2),
        ("/v1/nodes/n1/ports".to_owned(), 2),
    ] {
        assert_eq!(get(&stage, &query).await["ports"].as_array().unwrap().len(), count, "{query}");
    }
    let first = get(&stage, "/v1/ports?limit=1").await;
    let next = first["next"].as_str().unwrap().strip_prefix(&stage.node_api).unwrap().to_owned();
    assert_ne!(get(&stage, &next).await["ports"][0]["uuid"], first["ports"][0]["uuid"]);

    for (body, status) in [
        (json!({"address": "52:54:00:00:00:0b"}), 400),
        (json!({"node_uuid": n1}), 400),
        (json!({"node_uuid": n1, "address": "x"}), 400),
        (json!({"node_uuid": n1, "address": "52:54:00:00:00:0a"}), 409),
        (json!({"node_uuid": n1, "address": "52:54:00:00:00:0b", "name": "left"}), 409),
        (json!({"node_uuid": n1, "address": "52:54:00:00:00:0b", "nonsense": 1}), 400),
        (json!({"node_uuid": "none", "address": "52:54:00:00:00:0b"}), 400),
        (json!({"node_uuid": "n1", "address": "52:54:00:00:00:0b"}), 201),
    ] {
        assert_eq!(ask(&stage, Method::POST, "/v1/ports", &body).await.status(), status, "{body}");
    }
    let op = |op: &str, path: &str, value: Value| json!([{"op": op, "path": path, "value": value}]);
    for (patch, status) in [
        (op("replace", "/address", json!("52:54:00:00:00:0c")), 200),
        (op("add", "/extra/b", json!(2)), 200),
        (op("remove", "/extra/a", json!(null)), 200),
        (op("replace", "/pxe_enabled", json!(true)), 200),
        (op("remove", "/physical_network", json!(null)), 200),
        (op("replace", "/address", json!("52:54:00:00:00:01")), 409),
        (op("add", "/node_uuid", json!("1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11")), 400),
        (op("add", "/internal_info/a", json!(1)), 400),
        (op("add", "/uuid", json!(null)), 400),
    ] {
        assert_eq!(ask(&stage, Method::PATCH, &path, &patch).await.status(), status, "{patch}");
    }
    let changed = get(&stage, &path).await;
    assert_eq!((&changed["extra"], &changed["pxe_enabled"]), (&json!({"b": 2}), &json!(true)));
    assert_eq!((&changed["physical_network"], changed["updated_at"].is_string()), (&json!(null), true));
    stage
        .change_node(|node| {
            let port = node.ports.iter_mut().find(|port| port.name.is_some()).unwrap();
            port.internal_info.insert("tenant_vif_port_id".into(), json!("vif"));
        })
        .await;
    assert_eq!(ask(&stage, Method::DELETE, &path, &Value::Null).await.status(), 409);
    stage.change_node(|node| node.ports.iter_mut().for_each(|port| port.internal_info.clear())).await;
    assert_eq!(ask(&stage, Method::DELETE, &path, &Value::Null).await.status(), 204);
    assert_eq!(ask(&stage, Method::GET, &path, &Value::Null).await.status(), 404);
    let old = ask_in("1.18", &stage, Method::GET, "/v1/ports/detail", &Value::Null).await;
    let old: Value = old.json().await.unwrap();
    let expected =
        ["address", "created_at", "extra", "internal_info", "links", "node_uuid", "updated_at", "uuid"];
    assert_eq!(keys(&old["ports"][0]), BTreeSet::from(expected));
}

#[tokio::test]
async fn what_belongs_to_a_node_and_to_the_conductor_is_told() {
    let stage = Stage::new(Script::default()).await;
    let conductor = stage.conductor.settings().conductor_name.clone();
    for (path, pointer, expected) in [
        ("/v1/drivers", "/drivers/0/name", json!("fake")),
        ("/v1/drivers", "/drivers/0/hosts/0", json!(conductor)),
        ("/v1/drivers/fake", "/default_boot_interface", json!("fake")),
        ("/v1/drivers/fake", "/enabled_raid_interfaces", json!(["agent", "no-raid"])),
        ("/v1/drivers/fake?fields=name", "", json!({"name": "fake"})),
        ("/v1/conductors", "/conductors/0/alive", json!(true)),
        ("/v1/portgroups?node=n1", "/portgroups", json!([])),
        ("/v1/volume/connectors", "/connectors", json!([])),
        ("/v1/volume/targets?detail=true", "/targets", json!([])),
        ("/v1/nodes/n1/bios", "/bios", json!([])),
        ("/v1/nodes/n1/firmware", "/firmware", json!([])),
        ("/v1/nodes/n1/vifs", "/vifs", json!([])),
        ("/v1/nodes/n1/traits", "/traits", json!([])),
        ("/v1/nodes/n1/vendor_passthru/methods", "", json!({})),
        ("/v1/nodes/n1/management/boot_device", "", json!({"boot_device": null, "persistent": null})),
        ("/v1/nodes/n1/management/boot_device/supported", "/supported_boot_devices", json!(["pxe", "disk"])),
        ("/v1/nodes/n1/states", "/provision_state", json!("available")),
        ("/v1/nodes/n1/states", "/console_enabled", json!(false)),
    ] {
        let found = get(&stage, path).await;
        let found = match (pointer, found.get("links").is_some()) {
            ("", true) => json!({"name": found["name"]}),
            _ => found.pointer(pointer).cloned().unwrap_or_default(),
        };
        assert_eq!(found, expected, "{path} {pointer}");
    }
    let own = format!("/v1/conductors/{conductor}");
    assert_eq!(get(&stage, &own).await["drivers"], json!(["fake"]));
    let none = Value::Null;
    for (method, path, body, status) in [
        (Method::PUT, "/v1/nodes/n1/traits", &json!({"traits": ["CUSTOM_B", "CUSTOM_A", "CUSTOM_B"]}), 204),
        (Method::PUT, "/v1/nodes/n1/traits/HW_CPU_X86_VMX", &none, 204),
        (Method::PUT, "/v1/nodes/n1/traits/gold", &none, 400),
        (Method::DELETE, "/v1/nodes/n1/traits/CUSTOM_B", &none, 204),
        (Method::DELETE, "/v1/nodes/n1/traits/CUSTOM_B", &none, 404),
        (Method::PUT, "/v1/nodes/n1/management/boot_device", &json!({"boot_device": "pxe"}), 204),
        (Method::PUT, "/v1/nodes/n1/management/boot_device", &json!({"boot_device": "floppy"}), 400),
        (Method::PUT, "/v1/nodes/n1/management/inject_nmi", &json!({}), 400),
        (Method::POST, "/v1/nodes/n1/vifs", &json!({"id": "vif"}), 204),
        (Method::POST, "/v1/nodes/n1/vifs", &json!({}), 400),
        (Method::DELETE, "/v1/nodes/n1/vifs/vif", &none, 204),
        (Method::POST, "/v1/nodes/n1/vendor_passthru?method=create_subscription", &json!({}), 400),
        (Method::GET, "/v1/conductors/nobody", &none, 404),
        (Method::GET, "/v1/drivers/ipmi", &none, 404),
        (Method::GET, "/v1/nodes/none/vifs", &none, 404),
        (Method::PUT, "/v1/nodes", &none, 405),
    ] {
        assert_eq!(ask(&stage, method.clone(), path, body).await.status(), status, "{method} {path} {body}");
    }
    assert_eq!(get(&stage, "/v1/nodes/n1").await["traits"], json!(["CUSTOM_A", "HW_CPU_X86_VMX"]));
    for (path, version) in
        [("/v1/nodes/n1/traits", "1.36"), ("/v1/conductors", "1.48"), ("/v1/portgroups", "1.22")]
    {
        assert_eq!(ask_in(version, &stage, Method::GET, path, &none).await.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn bodies_that_are_too_long_or_too_deep_are_refused_with_one_clear_error() {
    let stage = Stage::new(Script::default()).await;
    let deep = format!("{}{}", "[".repeat(30), "]".repeat(30));
    let body = json!({"driver": "fake", "extra": {"deep": serde_json::from_str::<Value>(&deep).unwrap()}});
    let reply = ask(&stage, Method::POST, "/v1/nodes", &body).await;
    assert_eq!(reply.status(), 400);
    assert!(fault(reply).await.contains("25 levels"));
    // What is announced is refused before it is sent.
    let address = stage.node_api.strip_prefix("http://").unwrap();
    for (path, length, part) in [
        ("/v1/nodes", (1 << 20) + 1, "1048576 bytes"),
        ("/v1/nodes", 100 << 20, "1048576 bytes"),
        ("/v1/nodes/n1/states/provision", 100 << 20, "100663296 bytes"),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("error_message"), "{answer}");
        assert!(answer.contains(part), "{answer}");
    }
    assert_eq!(names(&get(&stage, "/v1/nodes").await), ["n1"]);
}

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
            assert_eq!(reply.status(), 404, "{path} before 1.{since}");
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

/// What the baremetal operator of Metal3 asks for, from the registration of a host to its end.
#[tokio::test]
async fn the_calls_of_metal3_lead_a_host_through_its_life() {
    let stage = Stage::new(Script::default()).await;
    let version = "1.110";
    let send = async |method: Method, path: &str, body: Value, status: u16| -> Value {
        let reply = ask_in(version, &stage, method.clone(), path, &body).await;
        let found = reply.status().as_u16();
        let text = reply.text().await.unwrap();
        assert_eq!(found, status, "{method} {path} {body}: {text}");
        serde_json::from_str(&text).unwrap_or_default()
    };
    let none = || Value::Null;
    let reached = async |path: &str, state: &str| {
        let end = std::time::Instant::now() + PATIENCE;
        loop {
            let node = send(Method::GET, path, Value::Null, 200).await;
            if node["provision_state"] == state && node["reservation"].is_null() {
                assert_eq!(node["target_provision_state"], Value::Null, "{node}");
                return node;
            }
            assert!(std::time::Instant::now() < end, "waited for {state}, but {node}");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    // The conductor is ready.
    assert!(send(Method::GET, "/v1", none(), 200).await["version"]["version"].is_string());
    assert!(!send(Method::GET, "/v1/drivers", none(), 200).await["drivers"].as_array().unwrap().is_empty());
    // Registration.
    send(Method::GET, "/v1/nodes/metal3~host-0", none(), 404).await;
    let ports =
        send(Method::GET, "/v1/ports?address=52:54:00:00:00:02&fields=node_uuid,uuid,address", none(), 200);
    assert_eq!(ports.await["ports"], json!([]));
    let new = json!({
        "driver": "fake", "name": "metal3~host-0", "driver_info": {"fake_address": "192.0.2.1", "fake_password": "p"},
        "properties": {"capabilities": "boot_mode:uefi", "cpu_arch": "x86_64"}, "boot_interface": "fake",
        "raid_interface": "no-raid", "power_interface": "fake", "vendor_interface": "no-vendor",
        "disable_power_off": false,
    });
    let node = send(Method::POST, "/v1/nodes", new, 201).await;
    assert_eq!((&node["provision_state"], &node["automated_clean"]), (&json!("enroll"), &json!(null)));
    let uuid = node["uuid"].as_str().unwrap().to_owned();
    let path = format!("/v1/nodes/{uuid}");
    let (provision, power) = (format!("{path}/states/provision"), format!("{path}/states/power"));
    send(
        Method::POST,
        "/v1/ports",
        json!({"node_uuid": uuid, "address": "52:54:00:00:00:02", "pxe_enabled": true}),
        201,
    )
    .await;
    let add = |path: &str, value: Value| json!({"op": "add", "path": path, "value": value});
    send(
        Method::PATCH,
        &path,
        json!([
            add("/automated_clean", json!(false)),
            add("/driver_info", json!({"fake_address": "192.0.2.1", "fake_password": "q"}))
        ]),
        200,
    )
    .await;
    send(Method::PUT, &provision, json!({"target": "manage"}), 202).await;
    reached(&path, "manageable").await;
    let busy =
        send(Method::GET, "/v1/nodes?fields=uuid,name,provision_state,boot_interface", none(), 200).await;
    assert_eq!(busy["nodes"].as_array().unwrap().len(), 2);
    send(Method::GET, &format!("{path}/firmware"), none(), 200).await;
    send(Method::GET, &format!("{path}/bios"), none(), 200).await;
    // Preparation.
    send(Method::PUT, &provision, json!({"target": "provide"}), 202).await;
    reached(&path, "available").await;
    // Provisioning.
    let instance = "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11";
    let checksum = "a".repeat(64);
    let patch = json!([
        add("/instance_uuid", json!(instance)),
        add("/instance_info/image_source", json!("http://192.0.2.5/debian.raw")),
        add("/instance_info/image_os_hash_algo", json!("sha256")),
        add("/instance_info/image_os_hash_value", json!(checksum)),
        add("/instance_info/image_disk_format", json!("raw")),
        add("/instance_info/capabilities", json!({"boot_mode": "uefi"})),
        add("/properties/root_device", json!({"size": ">= 10"})),
        add("/properties/capabilities", json!("boot_mode:uefi")),
    ]);
    send(Method::PATCH, &path, patch, 200).await;
    let validity = send(Method::GET, &format!("{path}/validate"), none(), 200).await;
    assert_eq!(
        (&validity["boot"]["result"], &validity["deploy"]["result"]),
        (&json!(true), &json!(true)),
        "{validity}"
    );
    let drive =
        json!({"meta_data": {"uuid": instance}, "network_data": {"links": []}, "user_data": "#!/bin/sh\n"});
    send(Method::PUT, &provision, json!({"target": "active", "configdrive": drive}), 202).await;
    let active = reached(&path, "active").await;
    assert_eq!((&active["instance_uuid"], &active["power_state"]), (&json!(instance), &json!("power on")));
    // Power: what the machine cannot do is refused with 400, and done the hard way then.
    let soft = ask(&stage, Method::PUT, &power, &json!({"target": "soft power off", "timeout": 5})).await;
    assert!([202, 400].contains(&soft.status().as_u16()), "{}", soft.status());
    reached(&path, "active").await;
    send(Method::PUT, &power, json!({"target": "power off"}), 202).await;
    assert_eq!(reached(&path, "active").await["power_state"], "power off");
    // Deprovisioning, and the end.
    send(Method::PUT, &provision, json!({"target": "deleted"}), 202).await;
    let free = reached(&path, "available").await;
    assert_eq!((&free["instance_uuid"], &free["instance_info"]), (&json!(null), &json!({})));
    send(Method::PUT, &format!("{path}/maintenance"), json!({"reason": "host is going away"}), 202).await;
    send(Method::DELETE, &path, none(), 204).await;
    send(Method::GET, &path, none(), 404).await;
}
