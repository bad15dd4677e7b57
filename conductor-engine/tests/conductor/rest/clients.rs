//! What clients of Ironic send that have a way of their own: a UUID that is taken, an empty text, an old path.

use crate::stand_ins::agent::Script;
use crate::stand_ins::operator::{ask, ask_in, get, set};
use crate::stand_ins::stage::{Stage, fault};
use async_trait::async_trait;
use farrier_conductor::interfaces::{BootContext, BootInterface, Interface, InterfaceError};
use farrier_conductor::model::{Node, PowerState, ProvisionState};
use farrier_conductor::{Drivers, HardwareType, PowerAction};
use farrier_engine::records::Order;
use farrier_media::KernelParameters;
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
        ("volume/connectors", &connector, "A volume connector with iqn a already exists"),
        ("ports", &port, "A port with MAC address 52:54:00:00:0a:01 already exists"),
        ("nodes", &json!({"driver": "fake", "name": "n3"}), "A node with the name \"n3\" already exists"),
        ("allocations", &json!({"name": "a", "resource_class": "x"}), "the name \"a\" already exists"),
    ] {
        assert_eq!(post(&stage, &format!("/v1/{path}"), body.clone()).await.status(), 201, "{path}");
        let reply = post(&stage, &format!("/v1/{path}"), body.clone()).await;
        assert_eq!(reply.status(), 409, "{path}");
        let text = fault(reply).await;
        assert!(text.contains(part) && !text.contains("another node"), "{path}: {text}");
    }
}

/// The order goes first, and the change after it: a client asks for it once.
#[tokio::test]
async fn k02_a_volume_changes_after_the_machine_has_gone_off() {
    let stage = Stage::with(Script::default(), |settings| settings.node_locked_attempts = 200).await;
    let node = stage.node().await.uuid;
    let target = json!({"node_uuid": node, "volume_type": "iscsi", "volume_id": "a", "boot_index": 0});
    let target: Value = post(&stage, "/v1/volume/targets", target).await.json().await.unwrap();
    let path = format!("/v1/volume/targets/{}", target["uuid"].as_str().unwrap());
    for number in 0..4 {
        stage.conductor.order("n1", Order::power(PowerAction::On)).await.unwrap();
        let end = std::time::Instant::now() + crate::stand_ins::stage::PATIENCE;
        while stage.idle().await.power_state != Some(PowerState::On) {
            assert!(std::time::Instant::now() < end);
        }
        let patch = json!([{"op": "replace", "path": "/volume_id", "value": format!("v{number}")}]);
        let refused = ask(&stage, Method::PATCH, &path, &patch).await;
        assert_eq!(refused.status(), 400, "it is on");
        let text = fault(refused).await;
        assert!(
            text.contains("The requested action \"volume target update\" can not be performed on node"),
            "{text}"
        );
        let power = json!({"target": "power off"});
        let ordered = ask(&stage, Method::PUT, "/v1/nodes/n1/states/power", &power).await;
        assert_eq!(ordered.status(), 202);
        let changed = ask(&stage, Method::PATCH, &path, &patch).await;
        assert_eq!(changed.status(), 200, "{}", changed.text().await.unwrap());
    }
    assert_eq!(ask(&stage, Method::DELETE, &path, &Value::Null).await.status(), 204);
}

/// A connector of a node that nobody has looked at yet may go.
#[tokio::test]
async fn k02_volumes_of_an_enrolled_node_may_be_deleted() {
    let stage = Stage::new(Script::default()).await;
    let node = post(&stage, "/v1/nodes", json!({"driver": "fake", "name": "n2"})).await;
    let node: Value = node.json().await.unwrap();
    let connector = json!({"node_uuid": node["uuid"], "type": "iqn", "connector_id": "a"});
    let connector: Value = post(&stage, "/v1/volume/connectors", connector).await.json().await.unwrap();
    let path = format!("/v1/volume/connectors/{}", connector["uuid"].as_str().unwrap());
    assert_eq!(ask(&stage, Method::DELETE, &path, &Value::Null).await.status(), 204);
}

#[tokio::test]
async fn k03_ports_of_a_group_have_one_physical_network() {
    let stage = Stage::new(Script::default()).await;
    let node = stage.node().await.uuid;
    let group: Value = post(&stage, "/v1/portgroups", json!({"node_uuid": node, "name": "bond0"}))
        .await
        .json()
        .await
        .unwrap();
    let port = |last: u8, network: Value, group: &Value| {
        json!({"node_uuid": node, "address": format!("52:54:00:00:0a:{last:02x}"), "physical_network": network,
            "portgroup_uuid": group})
    };
    let group = &group["uuid"];
    assert_eq!(post(&stage, "/v1/ports", port(1, json!("net1"), group)).await.status(), 201);
    assert_eq!(post(&stage, "/v1/ports", port(2, json!("net1"), group)).await.status(), 201);
    for network in [json!("net2"), json!(null)] {
        let refused = post(&stage, "/v1/ports", port(3, network, group)).await;
        assert_eq!(refused.status(), 409);
        assert!(fault(refused).await.contains("physical network net1"));
    }
    let outside: Value =
        post(&stage, "/v1/ports", port(3, json!("net2"), &Value::Null)).await.json().await.unwrap();
    let path = format!("/v1/ports/{}", outside["uuid"].as_str().unwrap());
    let joins = json!([{"op": "add", "path": "/portgroup_uuid", "value": group}]);
    assert_eq!(ask(&stage, Method::PATCH, &path, &joins).await.status(), 409);
    let both = json!([
        {"op": "add", "path": "/portgroup_uuid", "value": group},
        {"op": "add", "path": "/physical_network", "value": "net1"},
    ]);
    assert_eq!(ask(&stage, Method::PATCH, &path, &both).await.status(), 200);
    let leaves = json!([{"op": "add", "path": "/physical_network", "value": "net2"}]);
    assert_eq!(ask(&stage, Method::PATCH, &path, &leaves).await.status(), 409);
}

#[tokio::test]
async fn k04_k13_every_list_and_the_old_form_of_the_console_have_their_routes() {
    let stage = Stage::new(Script::default()).await;
    assert_eq!(set(&stage, "n1", &json!({"/shard": "s1"})).await.status(), 200);
    post(&stage, "/v1/nodes", json!({"driver": "fake", "name": "n2"})).await;
    let properties = get(&stage, "/v1/drivers/fake/raid/logical_disk_properties").await;
    assert!(properties["raid_level"].is_string(), "{properties}");
    let missing = ask(&stage, Method::GET, "/v1/drivers/x/raid/logical_disk_properties", &Value::Null).await;
    assert_eq!(missing.status(), 404);
    let shards = get(&stage, "/v1/shards").await;
    for (name, count) in [(json!("s1"), 1), (Value::Null, 1)] {
        assert!(
            shards["shards"].as_array().unwrap().contains(&json!({"name": name, "count": count})),
            "{shards}"
        );
    }
    assert_eq!(ask_in("1.81", &stage, Method::GET, "/v1/shards", &Value::Null).await.status(), 404);
    assert!(get(&stage, "/v1/nodes/n1/volume").await["connectors"].is_array());
    assert!(get(&stage, "/v1/volume").await["targets"].is_array());
    let node = stage.node().await.uuid;
    post(&stage, "/v1/portgroups", json!({"node_uuid": node, "name": "bond0"})).await;
    let groups = get(&stage, "/v1/nodes/n1/portgroups/detail").await;
    assert_eq!(groups["portgroups"][0]["mode"], "active-backup", "{groups}");
    let new = get(&stage, "/v1/nodes/n1/states/console").await;
    assert_eq!(get(&stage, "/v1/nodes/states/console/n1").await, new);
}

#[tokio::test]
async fn k06_the_version_tells_where_everything_is() {
    let stage = Stage::new(Script::default()).await;
    let described = get(&stage, "/v1").await;
    for name in ["nodes", "ports", "drivers", "chassis", "portgroups", "volume", "conductors", "allocations"]
    {
        assert_eq!(described[name][0]["href"], format!("{}/v1/{name}", stage.node_api), "{name}");
    }
    assert!(described["version"]["version"].is_string() && described["links"].is_array());
    let old: Value = ask_in("1.1", &stage, Method::GET, "/v1/", &Value::Null).await.json().await.unwrap();
    assert!(old["nodes"].is_array() && old.get("allocations").is_none(), "{old}");
}

#[tokio::test]
async fn k08_k09_what_is_not_there_yet_is_refused_as_ironic_does() {
    let stage = Stage::new(Script::default()).await;
    for (version, method, path, status) in [
        ("1.51", Method::GET, "/v1/allocations", 404),
        ("1.51", Method::POST, "/v1/allocations", 405),
        ("1.51", Method::DELETE, "/v1/allocations/x", 405),
        ("1.54", Method::PATCH, "/v1/deploy_templates/x", 405),
        ("1.91", Method::POST, "/v1/runbooks", 405),
        ("1.36", Method::GET, "/v1/nodes/n1/traits", 406),
        ("1.36", Method::PUT, "/v1/nodes/n1/traits", 405),
        ("1.36", Method::DELETE, "/v1/nodes/n1/traits/CUSTOM_A", 404),
        ("1.36", Method::DELETE, "/v1/nodes/n1/traits", 404),
        ("1.22", Method::POST, "/v1/portgroups", 404),
        ("1.22", Method::DELETE, "/v1/portgroups/x", 404),
        ("1.31", Method::PATCH, "/v1/volume/connectors/x", 404),
        ("1.31", Method::POST, "/v1/volume/targets", 404),
        ("1.51", Method::GET, "/v1/nodes/None/allocation", 404),
        ("1.51", Method::DELETE, "/v1/nodes/n1/allocation", 404),
        ("1.11", Method::GET, "/drivers/fake/raid/logical_disk_properties", 406),
        ("1.88", Method::PUT, "/v1/nodes/n1/vmedia", 404),
        ("1.89", Method::PUT, "/v1/nodes/n1/vmedia", 405),
        ("1.39", Method::PUT, "/v1/nodes/n1/bios", 404),
        ("1.77", Method::POST, "/v1/nodes/n1/history", 404),
        ("1.88", Method::POST, "/v1/nodes/n1/vmedia", 404),
        ("1.88", Method::DELETE, "/v1/nodes/n1/vmedia", 404),
        ("1.27", Method::POST, "/v1/nodes/n1/vifs", 404),
    ] {
        let reply = ask_in(version, &stage, method.clone(), path, &json!({"traits": []})).await;
        assert_eq!(reply.status(), status, "{method} {path}");
    }
}

#[tokio::test]
async fn k10_k11_what_nothing_can_be_called_by_is_no_identity() {
    let stage = Stage::new(Script::default()).await;
    for (version, path) in [
        ("1.110", "/v1/ports/52:54:00:00:00:01"),
        ("1.110", "/v1/ports/malformed:uuid"),
        ("1.80", "/v1/ports/some_name"),
        ("1.110", "/v1/volume/connectors/x"),
        ("1.110", "/v1/volume/targets/malformed:uuid"),
        ("1.110", "/v1/nodes/None/allocation"),
    ] {
        let reply = ask_in(version, &stage, Method::GET, path, &Value::Null).await;
        assert_eq!(reply.status(), 400, "{path}");
    }
    for method in [Method::DELETE, Method::PATCH] {
        let reply = ask(&stage, method, "/v1/ports/52:54:00:00:00:01", &json!([])).await;
        assert_eq!(reply.status(), 400);
    }
    let missing = format!("/v1/ports/{U}");
    assert_eq!(ask(&stage, Method::GET, &missing, &Value::Null).await.status(), 404);
    let port = json!({"node_uuid": "malformed:uuid", "address": "52:54:00:00:0a:01"});
    assert_eq!(ask_in("1.93", &stage, Method::POST, "/v1/ports", &port).await.status(), 400);
}

#[tokio::test]
async fn k12_a_path_may_end_with_json_in_old_versions() {
    let stage = Stage::new(Script::default()).await;
    let node = stage.node().await.uuid;
    let group = json!({"node_uuid": node, "name": "bond0"});
    let group: Value = post(&stage, "/v1/portgroups", group).await.json().await.unwrap();
    for path in [
        format!("/v1/nodes/{node}"),
        "/v1/nodes/n1".into(),
        format!("/v1/portgroups/{}", group["uuid"].as_str().unwrap()),
    ] {
        let path = format!("{path}.json?fields=uuid");
        assert_eq!(ask_in("1.90", &stage, Method::GET, &path, &Value::Null).await.status(), 200, "{path}");
        assert_eq!(ask_in("1.91", &stage, Method::GET, &path, &Value::Null).await.status(), 404, "{path}");
    }
    let renamed = json!([{"op": "replace", "path": "/extra", "value": {"a": 1}}]);
    let changed = ask_in("1.90", &stage, Method::PATCH, "/v1/nodes/n1.json", &renamed).await;
    assert_eq!(changed.json::<Value>().await.unwrap()["extra"], json!({"a": 1}));
    let allocation: Value = post(&stage, "/v1/allocations", json!({"name": "a", "resource_class": "x"}))
        .await
        .json()
        .await
        .unwrap();
    let connector = json!({"node_uuid": node, "type": "iqn", "connector_id": "a"});
    let connector: Value = post(&stage, "/v1/volume/connectors", connector).await.json().await.unwrap();
    for (path, record) in
        [("portgroups", &group), ("allocations", &allocation), ("volume/connectors", &connector)]
    {
        let path = format!("/v1/{path}/{}.json", record["uuid"].as_str().unwrap());
        let delete =
            async |version| ask_in(version, &stage, Method::DELETE, &path, &Value::Null).await.status();
        assert_eq!(delete("1.90").await, 204, "{path}");
    }
    // One that is called so is meant itself, whatever else is asked for.
    post(&stage, "/v1/nodes", json!({"driver": "fake", "name": "n1.json"})).await;
    let named = ask_in("1.90", &stage, Method::GET, "/v1/nodes/n1.json", &Value::Null).await;
    assert_eq!(named.json::<Value>().await.unwrap()["name"], "n1.json");
    let deleted = ask_in("1.90", &stage, Method::DELETE, "/v1/nodes/n1.json?unknown=1", &Value::Null).await;
    assert!(deleted.status() == 204 || deleted.status() == 400, "{}", deleted.status());
    assert_eq!(ask(&stage, Method::GET, "/v1/nodes/n1", &Value::Null).await.status(), 200);
}

/// A boot interface that lacks what it is to boot.
struct WithoutImages;

#[async_trait]
impl Interface for WithoutImages {
    async fn validate(&self, _node: &Node) -> Result<(), InterfaceError> {
        Err(InterfaceError::driver_info("deploy_kernel", "is missing"))
    }
}

#[async_trait]
impl BootInterface for WithoutImages {
    async fn prepare_ramdisk(
        &self,
        boot: BootContext<'_>,
        _parameters: &KernelParameters,
    ) -> Result<(), InterfaceError> {
        self.validate(boot.node).await
    }

    async fn clean_up_ramdisk(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn prepare_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        boot.boot_from_disk(self).await
    }

    async fn clean_up_instance(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(())
    }
}

/// Metal3 has a node managed, and adopted, before it says what it boots.
#[tokio::test]
async fn k22_k23_a_node_is_managed_and_adopted_by_its_power_alone() {
    let compose = |drivers: Drivers| {
        let site = HardwareType::new("site").power(["fake"]).boot(["without-images"]).deploy(["direct"]);
        drivers.boot("without-images", WithoutImages).hardware_type(site)
    };
    let stage = Stage::composed(Script::default(), "site", compose).await;
    stage.change_node(|node| node.provision_state = ProvisionState::Enroll).await;
    stage.conductor.order("n1", Order::Manage).await.unwrap();
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!(node.last_error, None);
    let validity = get(&stage, "/v1/nodes/n1/validate").await;
    assert_eq!(validity["boot"]["result"], false, "{validity}");
    stage.conductor.order("n1", Order::Adopt).await.unwrap();
    stage.wait_for(ProvisionState::Active).await;
    // What boots something is refused all the same.
    stage.conductor.order("n1", Order::Undeploy).await.unwrap();
    stage.wait_for(ProvisionState::Available).await;
    let refused =
        stage.conductor.order("n1", Order::deploy(crate::stand_ins::stage::image())).await.unwrap_err();
    assert!(refused.to_string().contains("deploy_kernel: is missing"), "{refused}");
}

/// gophercloud sends an empty object where there is no config drive.
#[tokio::test]
async fn k24_an_empty_config_drive_is_none() {
    let stage = Stage::new(Script::default()).await;
    let image = json!({"image_source": "http://h/i", "image_checksum": "a".repeat(64)});
    assert_eq!(set(&stage, "n1", &json!({"/instance_info": image})).await.status(), 200);
    for version in ["1.55", "1.110"] {
        let order = json!({"target": "active", "configdrive": {}});
        let path = "/v1/nodes/n1/states/provision";
        assert_eq!(ask_in(version, &stage, Method::PUT, path, &order).await.status(), 202);
        let node = stage.wait_for(ProvisionState::Active).await;
        assert!(!node.instance_info.contains_key("configdrive"));
        stage.conductor.order("n1", Order::Undeploy).await.unwrap();
        stage.wait_for(ProvisionState::Available).await;
        assert_eq!(set(&stage, "n1", &json!({"/instance_info": image})).await.status(), 200);
    }
}

/// terraform-provider-ironic has one text for what is empty and what is not said.
#[tokio::test]
async fn c24_an_empty_text_is_no_name_and_no_interface() {
    let stage = Stage::new(Script::default()).await;
    let new = json!({"driver": "fake", "name": "", "boot_interface": "", "raid_interface": "", "owner": ""});
    let reply = post(&stage, "/v1/nodes", new).await;
    assert_eq!(reply.status(), 201);
    let node: Value = reply.json().await.unwrap();
    assert_eq!((&node["name"], &node["boot_interface"]), (&Value::Null, &json!("fake")));
    let cleared = json!({"/boot_interface": "", "/name": ""});
    let reply = set(&stage, node["uuid"].as_str().unwrap(), &cleared).await;
    assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap());
    let group = json!({"node_uuid": node["uuid"], "name": ""});
    assert_eq!(post(&stage, "/v1/portgroups", group).await.status(), 201);
    let port = json!({"node_uuid": node["uuid"], "name": "", "address": "52:54:00:00:0a:01"});
    assert_eq!(post(&stage, "/v1/ports", port).await.status(), 201);
}
