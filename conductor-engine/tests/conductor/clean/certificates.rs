//! Proof that disks were erased: certificates that are kept, and those that are refused.

use crate::stand_ins::agent::Script;
use crate::stand_ins::agent::signing::Proof;
use crate::stand_ins::stage::Stage;
use farrier_conductor::model::Erasure;
use farrier_conductor::model::{Fault, Node, ProvisionState};
use farrier_engine::evidence::erasing::Signed;
use farrier_engine::records::Order;
use serde_json::{Value, json};

fn proving(disks: &[&str]) -> Script {
    Script { proof: Proof::of(disks), ..Script::default() }
}

async fn provide(stage: &Stage) {
    stage.manageable().await;
    stage.conductor.order("n1", Order::Provide).await.unwrap();
}

fn mark(node: &Node) -> Erasure {
    node.driver_internal_info.erasure.clone().unwrap()
}

async fn certificates(stage: &Stage) -> Value {
    let url = format!("{}/farrier/v1/nodes/n1/certificates", stage.node_api);
    stage.http.get(url).send().await.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn the_last_cleaning_proves_the_disks_erased_until_the_next_instance_comes() {
    let stage = Stage::new(proving(&["S1", "S2"])).await;
    provide(&stage).await;
    let node = stage.wait_for(ProvisionState::Available).await;
    assert_eq!(mark(&node).to_string(), "proven: S1, S2 erased");
    let told = certificates(&stage).await;
    assert_eq!(told["erasure"]["is_proven"], true);
    let all = told["certificates"].as_array().unwrap();
    let kept: Vec<_> =
        all.iter().map(|one| format!("{} {}", one["disk"], one["statement"]["step"])).collect();
    let expected = [
        r#""S1" "erase_devices""#,
        r#""S1" "erase_devices_metadata""#,
        r#""S2" "erase_devices""#,
        r#""S2" "erase_devices_metadata""#,
        r#""machine" "erase_devices""#,
        r#""machine" "erase_devices_metadata""#,
    ];
    assert_eq!(kept, expected);
    for one in all {
        let signed = Signed::read(one["certificate"].as_str().unwrap()).unwrap();
        assert_eq!(signed.is_of(&node.uuid.to_string(), one["agent"].as_str().unwrap()), Ok(()));
        assert_eq!(json!(signed.statement), one["statement"]);
    }
    // Clients see the mark with the conductor's other notes.
    let shown = stage.http.get(format!("{}/v1/nodes/n1", stage.node_api));
    let shown = shown.header("X-OpenStack-Ironic-API-Version", "1.110").send().await.unwrap();
    let shown: Value = shown.json().await.unwrap();
    assert_eq!(shown["driver_internal_info"]["erasure"]["erased"], json!(["S1", "S2"]));

    stage.deploy().await;
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!(node.driver_internal_info.erasure, None);
    // What was proven before the instance stays on record, until the next cleaning begins.
    assert_eq!(certificates(&stage).await["certificates"], told["certificates"]);
    stage.change(|script| script.proof = Proof::of(&["S3"]));
    stage.conductor.order("n1", Order::Undeploy).await.unwrap();
    let node = stage.wait_for(ProvisionState::Available).await;
    assert_eq!(mark(&node).to_string(), "proven: S3 erased");
    assert_eq!(certificates(&stage).await["certificates"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_certificate_that_proves_nothing_fails_the_step_and_is_named() {
    for (change, reason) in [
        ((|proof| proof.is_forged = true) as fn(&mut Proof), "a signature that does not verify"),
        (|proof| proof.is_of_another = true, "signed by another agent"),
        (
            |proof| proof.node = Some("1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11".into()),
            "of another node, 1f4c3c6e",
        ),
        (|proof| proof.is_replayed = true, "is not of this run of the step"),
    ] {
        let mut script = proving(&["S1"]);
        change(&mut script.proof);
        let stage = Stage::new(script).await;
        provide(&stage).await;
        let node = stage.wait_for(ProvisionState::CleanFailed).await;
        let error = node.last_error.unwrap();
        assert!(error.contains(reason) && error.contains("erase_devices_metadata failed"), "{error}");
        assert!(error.contains("/dev/disk0"), "{error}");
        assert_eq!((node.fault, node.driver_internal_info.erasure), (Some(Fault::Clean), None));
        assert_eq!(certificates(&stage).await["certificates"], json!([]));
    }
}

#[tokio::test]
async fn nothing_becomes_available_without_proof_or_the_reason_why_there_is_none() {
    let cases: [(Script, Option<bool>, &str); 5] = [
        // As the Python agent does.
        (Script::default(), None, "not proven: the agent gave no certificates of erasure"),
        (proving(&["S1"]), Some(false), "not proven: automated cleaning is switched off by the node"),
        (
            Script {
                proof: Proof { method: Some("metadata".into()), ..Proof::of(&["S1"]) },
                ..Script::default()
            },
            None,
            "not proven: of these disks nothing but the metadata was removed: S1",
        ),
        (
            Script {
                proof: Proof { without_driver: vec!["controller 0000:03:00.0".into()], ..Proof::of(&["S1"]) },
                ..Script::default()
            },
            None,
            "not proven: controllers had no driver: controller 0000:03:00.0",
        ),
        (proving(&["S1"]), None, "proven: S1 erased"),
    ];
    for (script, automated_clean, expected) in cases {
        let stage = Stage::new(script).await;
        let enrolled = stage.node().await;
        assert!(mark(&enrolled).to_string().contains("enrolled as available"), "{enrolled:?}");
        stage.change_node(|node| node.automated_clean = automated_clean).await;
        provide(&stage).await;
        let node = stage.wait_for(ProvisionState::Available).await;
        assert!(mark(&node).to_string().starts_with(expected), "{}", mark(&node));
    }
    let stage = Stage::with(Script::default(), |settings| settings.automated_clean = false).await;
    provide(&stage).await;
    let node = stage.wait_for(ProvisionState::Available).await;
    assert!(mark(&node).to_string().ends_with("switched off by the conductor's settings"));
}

/// Cleaning by hand proves what it proves, and makes no node available.
#[tokio::test]
async fn certificates_of_a_cleaning_by_hand_are_kept_too() {
    let stage = Stage::new(proving(&["S1"])).await;
    stage.manageable().await;
    stage.clean(json!([{"interface": "deploy", "step": "erase_devices"}])).await;
    stage.wait_for(ProvisionState::Manageable).await;
    let told = certificates(&stage).await;
    assert_eq!(told["certificates"][0]["statement"]["step"], "erase_devices");
}
