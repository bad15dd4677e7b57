//! Versions, fields and paths.

use super::keys;
use crate::stand_ins::agent::Script;
use crate::stand_ins::operator::{NEWEST, ask, ask_in, get};
use crate::stand_ins::stage::Stage;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The fields of a node and the version that brought each, as Ironic documents them.
pub const FIELDS: &[(&str, u16)] = &[
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
    for name in ["a/b", "..", "detail", " ", &long] {
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
