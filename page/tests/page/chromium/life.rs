//! The life of a node, by the page alone.

use super::{sign_in, signed_in};
use crate::stage::Stage;
use farrier_conductor::model::ProvisionState;
use farrier_tests::browser::{Chromium, Scripts};
use std::time::{Duration, Instant};

/// Longest wait for a state.
const PATIENCE: Duration = Duration::from_secs(60);

/// Gives an order on the page of a node, as a user does who reads what it says.
async fn order(browser: &Chromium, order: &str, node: &str) {
    let form = format!("form[action$='/orders/{order}']");
    let folded = format!("details:not([open]):has({form}) > summary");
    if browser.has(&folded).await.unwrap() {
        browser.click(&folded).await.unwrap();
    }
    let confirmation = format!("{form} [name=confirm]");
    if browser.has(&confirmation).await.unwrap() {
        browser.fill(&confirmation, node).await.unwrap();
    }
    browser.click(&format!("{form} button")).await.unwrap();
    browser.wait_for(".notice", "was accepted").await.unwrap();
}

/// Waits for a state with orders: the page shows it by itself, or its user loads it again.
async fn arrives(browser: &Chromium, state: &str, next: &str, scripts: Scripts) {
    let end = Instant::now() + PATIENCE;
    let form = format!("form[action$='/orders/{next}']");
    while !browser.text_of("#standing").await.is_ok_and(|text| text.starts_with(&format!("{state} since")))
        || !browser.has(&form).await.unwrap()
    {
        assert!(Instant::now() < end, "waited for {state}: {}", browser.text().await.unwrap());
        if scripts == Scripts::Forbidden {
            browser.follow("Load again").await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn lives_on_the_page_alone(scripts: Scripts) {
    let stage = Stage::with_fake_hardware().await;
    stage.run();
    stage.node("n1", |node| node.provision_state = ProvisionState::Enroll).await;
    let browser = signed_in(&stage.url, "anna", scripts).await;
    browser.follow("n1").await.unwrap();
    for (given, state, next) in [
        ("manage", "manageable", "provide"),
        ("provide", "available", "deploy"),
        ("deploy", "active", "undeploy"),
        ("undeploy", "available", "manage"),
    ] {
        order(&browser, given, "n1").await;
        arrives(&browser, state, next, scripts).await;
    }
    browser.follow("Timeline").await.unwrap();
    browser.wait_for("#life", "ordered by anna").await.unwrap();
    let life = browser.text_of("#life").await.unwrap();
    for state in ["enroll", "verifying", "manageable", "available", "deploying", "active", "deleting"] {
        assert!(life.contains(state), "{state}: {life}");
    }
}

#[tokio::test]
async fn browser_takes_a_node_from_enrolment_to_active_and_back_with_script() {
    lives_on_the_page_alone(Scripts::Run).await;
}

#[tokio::test]
async fn browser_takes_a_node_from_enrolment_to_active_and_back_without_script() {
    lives_on_the_page_alone(Scripts::Forbidden).await;
}

#[tokio::test]
async fn browser_whose_login_expires_between_form_and_order_orders_nothing() {
    let stage = Stage::new().await;
    let node = stage.node("n1", |node| node.provision_state = ProvisionState::Available).await;
    let browser = signed_in(&stage.url, "anna", Scripts::Run).await;
    browser.follow("n1").await.unwrap();
    stage.clock.jump(time::Duration::minutes(61));
    browser.click("form[action$='/orders/manage'] button").await.unwrap();
    browser.wait_for("[role=alert]", "Nothing was ordered").await.unwrap();
    assert_eq!(stage.read(&node).await.provision_state, ProvisionState::Available);
    sign_in(&browser, "anna").await;
    // The page of the node again, where the same order is one click away.
    browser.wait_for("h1", "n1").await.unwrap();
    browser.click("form[action$='/orders/manage'] button").await.unwrap();
    browser.wait_for("#standing", "manageable").await.unwrap();
}
