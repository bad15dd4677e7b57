//! What only this conductor has, below `/farrier`.

use crate::stand_ins::agent::Script;
use crate::stand_ins::stage::{Stage, fault, image};
use farrier_conductor::model::ProvisionState;
use serde_json::{Value, json};

async fn deploy(stage: &Stage, body: &Value) -> reqwest::Response {
    let url = format!("{}/farrier/v1/nodes/n1/deployment", stage.node_api);
    stage.http.put(url).json(body).send().await.unwrap()
}

#[tokio::test]
async fn a_deployment_is_ordered_with_all_that_is_to_be_known_of_it() {
    let stage = Stage::new(Script::default()).await;
    let ordered = deploy(&stage, &json!({"instance_info": image()})).await;
    assert_eq!(ordered.status(), 202);
    let since = ordered.json::<Value>().await.unwrap()["events_since"].as_u64().unwrap();
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!(node.instance_info["image_source"], image()["image_source"]);
    assert!(!stage.conductor.events().since(node.uuid, since).is_empty());
    // What has an instance is rebuilt.
    assert_eq!(deploy(&stage, &json!({"instance_info": image()})).await.status(), 202);
    stage.wait_for(ProvisionState::Active).await;
}

#[tokio::test]
async fn a_deployment_that_is_refused_leaves_the_node_as_it_was() {
    let stage = Stage::new(Script::default()).await;
    stage.change_node(|node| node.instance_info.insert("kept".into(), json!(1)).map_or((), drop)).await;
    let before = stage.node().await;
    let with = |key: &str, value: Value| {
        let mut info = json!(image());
        info[key] = value;
        json!({"instance_info": info})
    };
    for (body, part) in [
        (with("image_checksum", json!("short")), "checksum"),
        (with("traits", json!(["CUSTOM_GOLD"])), "CUSTOM_GOLD"),
        (with("configdrive", json!(7)), "configdrive"),
        (json!({"instance_info": image(), "deploy_steps": [{"step": "x"}]}), "interface"),
        (json!({"instance_info": image(), "wish": 1}), "wish"),
    ] {
        let refused = deploy(&stage, &body).await;
        assert_eq!(refused.status(), 400, "{body}");
        let text = fault(refused).await;
        assert!(text.contains(part), "{body}: {text}");
        let node = stage.idle().await;
        assert_eq!(node.instance_info, before.instance_info, "{body}");
        assert_eq!(node.provision_state, ProvisionState::Available, "{body}");
    }
    stage.conductor.set_maintenance("n1", true, None).await.unwrap();
    assert_eq!(deploy(&stage, &json!({"instance_info": image()})).await.status(), 400);
    assert_eq!(stage.idle().await.instance_info, before.instance_info);
}
