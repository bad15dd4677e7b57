//! The disk of a machine, exported by hand while nothing else becomes of its node.

use crate::records::explain::explain;
use crate::stand_ins::agent::Script;
use crate::stand_ins::stage::{Stage, fault};
use farrier_conductor::PowerAction;
use farrier_conductor::model::{Node, PowerState, ProvisionState};
use farrier_engine::records::Order;
use reqwest::{Method, Response};
use serde_json::{Value, json};

const START: &str = "iscsi.start_iscsi_target";

async fn ask(stage: &Stage, method: Method, body: Option<&Value>) -> Response {
    let request = stage.http.request(method, format!("{}/farrier/v1/nodes/n1/disk/export", stage.node_api));
    let request = match body {
        Some(body) => request.json(body),
        None => request,
    };
    request.send().await.unwrap()
}

/// A node whose agent waits for its operator.
async fn held(script: Script) -> Stage {
    let stage = Stage::new(script).await;
    stage.manageable().await;
    stage.clean(json!([{"interface": "deploy", "step": "hold"}])).await;
    stage.wait_for(ProvisionState::CleanHold).await;
    stage
}

#[tokio::test]
async fn an_exported_disk_keeps_everything_else_from_its_node_until_it_is_released() {
    let stage = held(Script::default()).await;
    let reply = ask(&stage, Method::PUT, Some(&json!({"read_only": true}))).await;
    assert_eq!(reply.status(), 200);
    let export: Value = reply.json().await.unwrap();
    let (_, told) = stage.script().accepted.iter().find(|(name, _)| name == START).unwrap().clone();
    assert_eq!((&told["read_only"], &told["wipe_disk_metadata"]), (&json!(true), &json!(false)));
    for (key, param) in [("target", "iqn"), ("chap_user", "chap_user"), ("chap_password", "chap_password")] {
        assert_eq!(export[key], told[param], "{key}");
    }
    assert_eq!(export["portal"], json!({"host": "127.0.0.1", "port": 3260}));
    assert_eq!(json!([export["initiator"]]), told["initiators"]);
    let node = stage.idle().await;
    let secret = export["chap_password"].as_str().unwrap();
    assert!(!format!("{node:?}").contains(secret), "the record has the secret");
    // A second export, and whatever leads on.
    let again = ask(&stage, Method::PUT, None).await;
    assert_eq!(again.status(), 409);
    assert!(fault(again).await.contains("farrier disk release n1"));
    for refused in
        [stage.conductor.order("n1", Order::Unhold).await, stage.conductor.order("n1", Order::Abort).await]
    {
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("the disk of node n1 is exported as iqn.2008-10.org.openstack:"), "{text}");
    }
    // Who was refused has looked at the node.
    stage.idle().await;
    let told = explain(&stage).await;
    assert!(told.waits_for.contains("its disk is exported by iSCSI"), "{told:#?}");
    assert_eq!(told.commands, ["farrier disk release n1"]);
    assert!(told.evidence.iter().any(|one| one.what == "disk export"), "{told:#?}");
    assert_eq!(ask(&stage, Method::DELETE, None).await.status(), 204);
    assert!(!stage.script().exports);
    let twice = ask(&stage, Method::DELETE, None).await;
    assert_eq!(twice.status(), 400);
    assert!(fault(twice).await.contains("is not exported"));
    stage.conductor.order("n1", Order::Unhold).await.unwrap();
    assert_eq!(stage.wait_for(ProvisionState::Manageable).await.last_error, None);
}

#[tokio::test]
async fn f60_an_export_that_fails_leaves_no_note_and_one_whose_machine_went_off_is_over() {
    let stage = held(Script { export_fails: Some("no disk fits".into()), ..Script::default() }).await;
    let failed = ask(&stage, Method::PUT, None).await;
    assert_eq!(failed.status(), 500);
    assert!(fault(failed).await.contains("no disk fits"));
    assert_eq!(stage.idle().await.driver_internal_info.disk_export, None);
    stage.change(|script| script.export_fails = None);
    assert_eq!(ask(&stage, Method::PUT, None).await.status(), 200);
    // What the agent cannot end stays noted.
    stage.change(|script| script.export_fails = Some("the kernel keeps it".into()));
    assert!(fault(ask(&stage, Method::DELETE, None).await).await.contains("the kernel keeps it"));
    assert!(stage.idle().await.driver_internal_info.disk_export.is_some());
    stage.conductor.order("n1", Order::power(PowerAction::Off)).await.unwrap();
    let is_off = |node: &Node| node.power_state == Some(PowerState::Off);
    let mut node = stage.idle().await;
    while !is_off(&node) {
        node = stage.idle().await;
    }
    assert_eq!(node.driver_internal_info.disk_export, None);
    let gone = ask(&stage, Method::PUT, None).await;
    assert_eq!(gone.status(), 400);
    assert!(fault(gone).await.contains("no agent answers on the machine of node n1"));
}

#[tokio::test]
async fn a_disk_is_exported_only_where_an_agent_waits_for_nothing_else() {
    let stage = Stage::new(Script { blocked: true, ..Script::default() }).await;
    let available = ask(&stage, Method::PUT, None).await;
    assert_eq!(available.status(), 409);
    assert!(fault(available).await.contains("clean hold"));
    stage.deploy().await;
    stage.told(|script| script.steps() == ["deploy deploy.write_image"]).await;
    stage.wait_for(ProvisionState::DeployWait).await;
    assert_eq!(ask(&stage, Method::PUT, None).await.status(), 409);
    // Whoever releases what is not theirs ends no deployment.
    assert_eq!(ask(&stage, Method::DELETE, None).await.status(), 400);
    for body in [json!({"read_only": "yes"}), json!({"port": 1})] {
        assert_eq!(ask(&stage, Method::PUT, Some(&body)).await.status(), 400, "{body}");
    }
    stage.change(|script| script.blocked = false);
    stage.wait_for(ProvisionState::Active).await;
    assert!(stage.script().accepted.iter().all(|(name, _)| !name.starts_with("iscsi.")));
}
