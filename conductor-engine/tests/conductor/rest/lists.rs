//! Lists, ports, and what belongs to nodes.

use super::fields::FIELDS;
use super::{keys, names};
use crate::stand_ins::agent::Script;
use crate::stand_ins::operator::{ask, ask_in, get, set};
use crate::stand_ins::stage::Stage;
use farrier_conductor::model::{NewNode, Node};
use farrier_engine::store::NodeStore;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use time::OffsetDateTime;

/// The names of the nodes that a query chooses.
async fn assert_chosen(stage: &Stage, query: &str, expected: &str) {
    let list = get(stage, &format!("/v1/nodes?{query}")).await;
    let separate: Vec<_> = expected.split(' ').filter(|name| !name.is_empty()).collect();
    assert_eq!(names(&list), separate, "{query}");
}

/// What clients and Terraform's provider ask of every list.
#[tokio::test]
async fn n20_every_list_is_sorted_by_any_field_that_is_one_value() {
    let stage = Stage::new(Script::default()).await;
    let node = get(&stage, "/v1/nodes/n1").await["uuid"].clone();
    let step = json!([{"interface": "deploy", "step": "x", "args": {}, "priority": 10}]);
    let order = json!([{"interface": "deploy", "step": "x", "args": {}, "order": 1}]);
    for (name, at) in [("B", 3), ("C", 1), ("A", 2)] {
        let lower = name.to_lowercase();
        for (path, body) in [
            ("ports", json!({"node_uuid": node, "address": format!("52:54:00:00:20:0{at}"), "name": lower})),
            (
                "portgroups",
                json!({"node_uuid": node, "name": lower, "address": format!("52:54:00:00:21:0{at}")}),
            ),
            ("chassis", json!({"description": lower})),
            ("deploy_templates", json!({"name": format!("CUSTOM_{name}"), "steps": step})),
            ("runbooks", json!({"name": format!("CUSTOM_{name}"), "steps": order})),
            (
                "volume/targets",
                json!({"node_uuid": node, "volume_type": "iscsi", "boot_index": at, "volume_id": lower}),
            ),
            ("volume/connectors", json!({"node_uuid": node, "type": "iqn", "connector_id": lower})),
            ("allocations", json!({"name": lower, "resource_class": lower})),
        ] {
            let (status, told) = {
                let reply = ask(&stage, Method::POST, &format!("/v1/{path}"), &body).await;
                (reply.status(), reply.text().await.unwrap())
            };
            assert_eq!(status, 201, "{path} {told}");
        }
    }
    for (path, list, key, expected) in [
        ("ports", "ports", "name", ["a", "b", "c"]),
        ("portgroups", "portgroups", "name", ["a", "b", "c"]),
        ("chassis", "chassis", "description", ["a", "b", "c"]),
        ("deploy_templates", "deploy_templates", "name", ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]),
        ("runbooks", "runbooks", "name", ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]),
        ("volume/targets", "targets", "volume_id", ["a", "b", "c"]),
        ("volume/connectors", "connectors", "connector_id", ["a", "b", "c"]),
        ("allocations", "allocations", "resource_class", ["a", "b", "c"]),
    ] {
        let values = |told: &Value| -> Vec<String> {
            let members = told[list].as_array().unwrap().iter();
            members.filter_map(|member| member[key].as_str().map(str::to_owned)).collect()
        };
        let asked = format!("/v1/{path}?fields=uuid,{key}&sort_key={key}");
        assert_eq!(values(&get(&stage, &asked).await), expected, "{path}");
        let mut reversed = expected;
        reversed.reverse();
        let told = get(&stage, &format!("{asked}&sort_dir=desc")).await;
        assert_eq!(values(&told), reversed, "{path}");
        // One after the other, by the links; the node's own port has no name.
        let (mut link, mut seen) = (format!("{asked}&sort_dir=desc&limit=1"), Vec::new());
        for _ in 0..3 {
            let part = get(&stage, &link).await;
            seen.extend(values(&part));
            let next = part["next"].as_str().unwrap_or_default();
            link = next[next.find("/v1/").unwrap_or_default()..].to_owned();
        }
        assert_eq!(seen, reversed, "{path}");
        for (query, told) in [
            ("sort_key=extra", 400),
            ("sort_key=links", 400),
            ("sort_key=x", 400),
            ("sort_dir=up", 400),
            ("sort_key=id", 200),
            ("sort_dir=desc", 200),
        ] {
            let reply = ask(&stage, Method::GET, &format!("/v1/{path}?{query}"), &Value::Null).await;
            assert_eq!(reply.status(), told, "{path} {query}");
        }
    }
    let indices = get(&stage, "/v1/volume/targets?detail=true&sort_key=boot_index").await;
    let indices: Vec<_> =
        indices["targets"].as_array().unwrap().iter().map(|one| one["boot_index"].clone()).collect();
    assert_eq!(indices, [1, 2, 3]);
    let history = "/v1/nodes/n1/history?sort_key=created_at&sort_dir=desc";
    assert_eq!(ask(&stage, Method::GET, history, &Value::Null).await.status(), 200);
}

#[tokio::test]
async fn n20_nodes_are_chosen_by_retirement_by_description_and_by_project() {
    let stage = Stage::new(Script::default()).await;
    for (name, owner, lessee, description, retired) in
        [("n2", "ann", "bob", "rack 7, 50% spare", true), ("n3", "bob", "eve", "rack 8", false)]
    {
        let body = json!({"driver": "fake", "name": name, "owner": owner, "lessee": lessee,
            "description": description, "extra": {"retired": true, "description": "rack 9"}});
        assert_eq!(ask(&stage, Method::POST, "/v1/nodes", &body).await.status(), 201);
        set(&stage, name, &json!({"/retired": retired})).await;
    }
    for (query, expected) in [
        ("retired=true", "n2"),
        ("retired=false", "n1 n3"),
        ("description_contains=rack", "n2 n3"),
        ("description_contains=0%25", "n2"),
        ("description_contains=rack_8", ""),
        ("description_contains=9", ""),
        ("project=bob", "n2 n3"),
        ("project=ann&retired=true", "n2"),
        ("project=nobody", ""),
    ] {
        assert_chosen(&stage, query, expected).await;
    }
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
        assert_chosen(&stage, query, expected).await;
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

/// A list reads only the columns that it shows; a field may hang on others.
#[tokio::test]
async fn e08_a_field_alone_is_as_in_detail() {
    let stage = Stage::new(Script::default()).await;
    let patch = json!([
        {"op": "add", "path": "/name", "value": "n1"},
        {"op": "add", "path": "/owner", "value": "them"},
        {"op": "add", "path": "/resource_class", "value": "large"},
    ]);
    assert_eq!(ask(&stage, Method::PATCH, "/v1/nodes/n1", &patch).await.status(), 200);
    let detail = get(&stage, "/v1/nodes/detail").await["nodes"][0].clone();
    assert!(detail["conductor"].is_string(), "{detail}");
    for (field, _) in FIELDS {
        for path in [format!("?fields={field}"), format!("?fields=uuid,{field}&sort_key=uuid")] {
            let shown = get(&stage, &format!("/v1/nodes{path}")).await["nodes"][0][field].clone();
            assert_eq!(shown, detail[field], "{path}");
        }
    }
    for field in ["conductor", "driver", "owner", "resource_class", "provision_state", "maintenance"] {
        let value = detail[field].to_string();
        let filter = format!("{field}={}", value.trim_matches('"'));
        for path in ["?", "/detail?", "?fields=uuid&", "?fields=conductor&", "?sort_key=name&"] {
            let found = get(&stage, &format!("/v1/nodes{path}{filter}")).await;
            assert_eq!(found["nodes"].as_array().map(Vec::len), Some(1), "{path}{filter}");
        }
    }
    assert_eq!(get(&stage, "/v1/nodes?conductor=nobody").await["nodes"], json!([]));
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
    for (path, version) in [("/v1/conductors", "1.48"), ("/v1/portgroups", "1.22")] {
        assert_eq!(ask_in(version, &stage, Method::GET, path, &none).await.status(), 404, "{path}");
    }
}
