//! What the pages of a node show.

use crate::markup::text;
use crate::stage::Stage;
use farrier_conductor::model::{InspectionData, Node, Port, ProvisionState};
use farrier_engine::store::{Change, InspectionChange, NodeStore, Terms};
use serde_json::{Value, json};
use time::OffsetDateTime;

/// The ends of the paths of a node.
pub const PAGES: [&str; 7] =
    ["", "/timeline", "/logs", "/explanation", "/hardware", "/interfaces", "/history"];

fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

pub async fn inspected(stage: &Stage, node: &Node, inventory: Value) {
    let now = OffsetDateTime::now_utc();
    let terms = Terms { holder: "test", now, expires_at: now + time::Duration::MINUTE };
    let (lease, record) = stage.store.take(node.uuid, &terms).await.unwrap();
    let data = InspectionData { inventory: object(inventory), ..InspectionData::default() };
    let inspection = InspectionChange::Put(&data);
    let change = Change { inspection, ends_lease: true, ..Change::of(&record.node) };
    stage.store.write(&lease, &change).await.unwrap();
}

#[tokio::test]
async fn a_node_is_explained_with_its_hardware_interfaces_and_history() {
    let stage = Stage::new().await;
    let node = stage
        .node("n1", |node| {
            node.provision_state = ProvisionState::DeployFailed;
            node.last_error = Some("the image has another checksum".to_owned());
            node.ports = vec![Port::new("52:54:00:00:00:01".parse().unwrap())];
        })
        .await;
    let inventory = json!({
        "system_vendor": {"manufacturer": "Smithy", "product_name": "Anvil 2"},
        "memory": {"total": 1, "physical_mb": 65536},
        "disks": [{"name": "/dev/sda", "size": 480_103_981_056_u64, "model": "SSD", "serial": "S1", "rotational": false}],
        "interfaces": [{"name": "eth0", "mac_address": "52:54:00:00:00:01", "has_carrier": true}],
    });
    inspected(&stage, &node, inventory).await;
    let browser = stage.signed_in("anna").await;
    let show = async |end: &str| text(&browser.page(&format!("/page/nodes/n1{end}")).await.body);
    let overview = show("").await;
    for part in [
        "It waits for an operator: its deployment failed.",
        "Correct the cause in the last error",
        "farrier node retry n1",
        "the image has another checksum",
        "Needs an operator",
        "All data on the root disk are lost.",
    ] {
        assert!(overview.contains(part), "{part}: {overview}");
    }
    assert!(show("/explanation").await.contains("The conductor has asked the agent"));
    let hardware = show("/hardware").await;
    for part in ["52:54:00:00:00:01", "Smithy", "64.0 GiB", "/dev/sda", "447.1 GiB", "S1", "eth0"] {
        assert!(hardware.contains(part), "{part}: {hardware}");
    }
    let interfaces = show("/interfaces").await;
    assert!(interfaces.contains("direct") && interfaces.contains("image_source"), "{interfaces}");
    assert!(show("/history").await.contains("No boot from the network is on record."));
    browser.page(&format!("/page/nodes/{}", node.uuid)).await;
}

#[tokio::test]
async fn no_page_has_a_secret() {
    let stage = Stage::new().await;
    let secret = "hunter2hunter2";
    stage
        .node("n1", |node| {
            node.driver_info =
                object(json!({"redfish_password": secret, "redfish_address": "https://192.0.2.9"}));
            node.instance_info =
                object(json!({"image_source": format!("https://me:{secret}@h/i"), "api_token": secret}));
            node.extra = object(json!({"note": {"secret": secret}}));
            node.last_error = Some(format!("curl https://me:{secret}@h/i failed: ipa-agent-token={secret}"));
            node.provision_state = ProvisionState::DeployFailed;
        })
        .await;
    for name in ["anna", "rita"] {
        let browser = stage.signed_in(name).await;
        for end in PAGES {
            let body = browser.page(&format!("/page/nodes/n1{end}")).await.body;
            assert!(!body.contains(secret), "{end}: {body}");
        }
        assert!(!browser.page("/page/").await.body.contains(secret));
    }
}

#[tokio::test]
async fn a_node_that_is_not_there_is_named() {
    let stage = Stage::new().await;
    let browser = stage.signed_in("rita").await;
    for end in PAGES {
        let answer = browser.get(&format!("/page/nodes/none{end}")).await.expect(404);
        assert!(text(&answer.body).contains("node \"none\" does not exist"), "{}", answer.body);
    }
}
