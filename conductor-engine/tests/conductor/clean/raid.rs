//! RAID volumes that the agent makes.

use crate::stand_ins::agent::Script;
use crate::stand_ins::stage::{Stage, fault, image, new_node};
use farrier_conductor::model::{InterfaceKind, Node, NodeInterfaces, ProvisionState};
use farrier_engine::records::Order;
use reqwest::Response;
use serde_json::{Value, json};

/// An agent that makes and deletes volumes.
fn agent() -> Script {
    let arguments = json!({"raid_config": {"description": "what to make", "required": true}});
    let step = |step: &str, arguments: &Value| json!({"interface": "raid", "step": step, "priority": 0, "argsinfo": arguments});
    let nothing = json!({});
    let steps = [
        step("create_configuration", &nothing),
        step("delete_configuration", &nothing),
        step("apply_configuration", &arguments),
    ];
    Script { offers: Some(steps.into()), produces: volumes(), ..Script::default() }
}

fn volumes() -> Value {
    json!({"logical_disks": [
        {"size_gb": 10, "raid_level": "1", "is_root_volume": true, "controller": "software"},
        {"size_gb": "MAX", "raid_level": "0", "controller": "software"},
    ]})
}

async fn set_target(stage: &Stage, node: &str, body: &Value) -> Response {
    let request = stage.http.put(format!("{}/v1/nodes/{node}/states/raid", stage.node_api)).json(body);
    request.header("X-OpenStack-Ironic-API-Version", "1.12").send().await.unwrap()
}

fn assert_noted(node: &Node) {
    assert_eq!(node.raid_config["logical_disks"], volumes()["logical_disks"]);
    assert!(node.raid_config["last_updated"].is_string());
    assert_eq!(
        (&node.properties["local_gb"], &node.properties["capabilities"]),
        (&json!(10), &json!("raid_level:1"))
    );
}

#[tokio::test]
async fn volumes_are_made_and_deleted_by_clean_steps() {
    let stage = Stage::new(agent()).await;
    stage.manageable().await;
    let clean = |step: &str| vec![json!({"interface": "raid", "step": step})];
    stage.clean(json!(clean("create_configuration"))).await;
    let error = stage.wait_for(ProvisionState::CleanFailed).await.last_error.unwrap();
    assert!(error.contains("the node has no target_raid_config"), "{error}");
    assert!(stage.machine.power_ons().is_empty());
    stage.manageable().await;

    assert_eq!(set_target(&stage, "n1", &volumes()).await.status(), 204);
    assert_eq!(json!(stage.node().await.target_raid_config), volumes());
    let both = [clean("delete_configuration"), clean("create_configuration")].concat();
    stage.clean(json!(both)).await;
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!(node.last_error, None);
    assert_noted(&node);
    assert_eq!(
        stage.script().steps(),
        ["clean raid.delete_configuration", "clean raid.create_configuration"]
    );
    let (_, told) = stage.script().accepted.pop().unwrap();
    assert_eq!(told["node"]["target_raid_config"], volumes());

    stage.clean(json!(clean("delete_configuration"))).await;
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert!(node.raid_config.is_empty(), "{:?}", node.raid_config);
}

#[tokio::test]
async fn volumes_are_made_by_a_deploy_step() {
    let stage = Stage::new(agent()).await;
    let deploy = async |config: Value| {
        let step = json!({"interface": "raid", "step": "apply_configuration", "args": {"raid_config": config},
            "priority": 90});
        stage.conductor.order("n1", Order::deploy_with_steps(image(), &[step])).await
    };
    let refused = deploy(json!({"logical_disks": [{"size_gb": 0, "raid_level": "1"}]})).await.unwrap_err();
    assert!(refused.to_string().contains("raid_config: volume 1: size_gb must be"), "{refused}");
    deploy(volumes()).await.unwrap();
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_noted(&node);
    let steps = stage.script().steps();
    assert_eq!(steps, ["deploy raid.apply_configuration", "deploy deploy.write_image"]);
    let (_, told) = stage.script().accepted.into_iter().find(|(name, _)| name.contains("execute")).unwrap();
    assert_eq!(told["step"]["args"]["raid_config"], volumes());
}

#[tokio::test]
async fn what_cannot_be_made_is_refused_and_nothing_wanted_is_nothing_to_make() {
    let stage = Stage::new(agent()).await;
    for (config, part) in [
        (json!([]), "JSON object"),
        (
            json!({"logical_disks": []}),
            "target_raid_config: logical_disks must be a list of at least one volume",
        ),
        (
            json!({"logical_disks": [{"size_gb": 1, "raid_level": "7"}], "x": 1}),
            "\"x\" is not known; volume 1: raid_level",
        ),
    ] {
        let reply = set_target(&stage, "n1", &config).await;
        assert_eq!(reply.status(), 400, "{config}");
        let text = fault(reply).await;
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
    assert_eq!(set_target(&stage, "n1", &volumes()).await.status(), 204);
    assert_eq!(set_target(&stage, "n1", &json!({})).await.status(), 204);
    assert!(stage.node().await.target_raid_config.is_empty());
}

#[tokio::test]
async fn a_node_without_raid_has_no_such_steps() {
    let stage = Stage::new(agent()).await;
    let mut interfaces = NodeInterfaces::default();
    interfaces.set(InterfaceKind::Raid, "no-raid");
    let mut new = new_node("plain", "52:54:00:00:00:02");
    new.interfaces = interfaces;
    stage.conductor.create_node(new).await.unwrap();
    let refused = set_target(&stage, "plain", &volumes()).await;
    assert_eq!(refused.status(), 400);
    let text = fault(refused).await;
    assert_eq!(text, "raid is not supported; choose another raid_interface for the node");

    stage.conductor.order("plain", Order::Manage).await.unwrap();
    stage.named("plain", ProvisionState::Manageable).await;
    let steps = [json!({"interface": "raid", "step": "delete_configuration"})];
    stage.conductor.order("plain", Order::clean(&steps)).await.unwrap();
    let error = stage.named("plain", ProvisionState::CleanFailed).await.last_error.unwrap();
    assert!(error.contains("raid.delete_configuration is unknown"), "{error}");
}
