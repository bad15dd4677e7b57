//! What operators ask, and how far the answer is from the list: two clicks at most.

use super::signed_in;
use crate::stage::Stage;
use farrier_conductor::model::{Fault, ProvisionState};
use farrier_tests::browser::Scripts;

#[tokio::test]
async fn browser_answers_each_question_of_an_operator_in_two_clicks() {
    let stage = Stage::new().await;
    stage
        .node("failed", |node| {
            node.provision_state = ProvisionState::DeployFailed;
            node.last_error = Some("the image has another checksum".to_owned());
        })
        .await;
    stage.node("waiting", |node| node.provision_state = ProvisionState::DeployWait).await;
    stage.node("ready", |node| node.provision_state = ProvisionState::Available).await;
    stage
        .node("silent", |node| {
            node.provision_state = ProvisionState::Active;
            (node.maintenance, node.fault) = (true, Some(Fault::Power));
        })
        .await;
    let browser = signed_in(&stage.url, "rita", Scripts::Run).await;
    let list = async || browser.go(&format!("{}/page/", stage.url)).await.unwrap();

    // Which nodes need me?
    list().await;
    browser.follow("Nodes that need an operator").await.unwrap();
    let shown = browser.text_of("table").await.unwrap();
    assert!(shown.contains("failed") && shown.contains("silent") && !shown.contains("ready"), "{shown}");

    // Why did this deployment fail?
    list().await;
    browser.follow("failed").await.unwrap();
    browser.wait_for("main", "the image has another checksum").await.unwrap();

    // What will this order do to the disks?
    list().await;
    browser.follow("ready").await.unwrap();
    browser.click("details:has(form[action$='/orders/deploy']) > summary").await.unwrap();
    browser.wait_for("form[action$='/orders/deploy']", "All data on the root disk are lost.").await.unwrap();

    // What is this node waiting for, and until when?
    list().await;
    browser.follow("waiting").await.unwrap();
    browser.wait_for("section", "What it waits for").await.unwrap();
    browser.wait_for("section", "Until 20").await.unwrap();

    // Which BMCs refuse?
    list().await;
    browser.follow("Estate").await.unwrap();
    let refusing = browser.text_of("#bmcs").await.unwrap();
    assert!(refusing.contains("silent") && !refusing.contains("ready"), "{refusing}");
}
