//! What changes on a page while somebody looks at it.

use super::line::Line;
use super::signed_in;
use crate::stage::Stage;
use farrier_conductor::model::{Node, ProvisionState};
use farrier_conductor::task::event::EventKind;
use farrier_tests::browser::{Chromium, Scripts};
use serde_json::json;
use std::time::{Duration, Instant};

/// Longest wait for a page.
const PATIENCE: Duration = Duration::from_secs(60);

/// Keeps the stream of a page where a test finds it.
const KEPT_STREAM: &str = "window.EventSource = class extends window.EventSource { constructor(url) { super(url); window.kept = this; } };";

/// The paths of the parts that the page has fetched, without their beginning.
const FETCHED: &str = "return performance.getEntriesByType('resource').map((entry) => entry.name)
    .filter((name) => name.includes('/page/parts')).map((name) => name.replace(/^.*?&part=/, ''))";

/// Marks the elements of the page, so that one that was replaced is known.
const MARK: &str = "for (const row of document.querySelectorAll('tbody tr')) row.mark = 'mine'";

async fn active(stage: &Stage, name: &str) -> Node {
    stage.node(name, |node| node.provision_state = ProvisionState::Active).await
}

async fn maintenance(stage: &Stage, node: &Node, begins: bool) {
    stage.conductor.set_maintenance(&node.uuid.to_string(), begins, Some("fan".to_owned())).await.unwrap();
}

fn row(node: &Node) -> String {
    format!("#n-{}", node.uuid)
}

/// Waits until something is so, which happens within the page.
async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < end, "waited for {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn fetched(browser: &Chromium) -> Vec<String> {
    serde_json::from_value(browser.run(FETCHED).await.unwrap()).unwrap()
}

#[tokio::test]
async fn browser_shows_a_changed_row_and_leaves_the_others_and_the_focus_alone() {
    let stage = Stage::new().await;
    let (one, other) = (active(&stage, "n1").await, active(&stage, "n2").await);
    let browser = signed_in(&stage.url, "rita", Scripts::Run).await;
    browser.click(&format!("{} input", row(&one))).await.unwrap();
    browser.run(MARK).await.unwrap();
    maintenance(&stage, &one, true).await;
    browser.wait_for(&row(&one), "Needs an operator: in maintenance").await.unwrap();
    let id = format!("n-{}", one.uuid);
    assert_eq!(fetched(&browser).await, [id.as_str()]);
    // The row is the same element with another content: it keeps its tick, and the focus of the keyboard.
    let kept = format!(
        "const row = document.getElementById('{id}'); const box = row.querySelector('input');
        return [box.checked, document.activeElement === box, document.getElementById('n-{}').mark === 'mine']",
        other.uuid
    );
    assert_eq!(browser.run(&kept).await.unwrap(), json!([true, true, true]));
    // Counts follow.
    stage.node("n3", |node| node.provision_state = ProvisionState::CleanFailed).await;
    browser.wait_for("#states", "clean failed 1").await.unwrap();
    stage.conductor.set_maintenance(&other.uuid.to_string(), true, None).await.unwrap();
    browser.wait_for(&row(&other), "Needs an operator").await.unwrap();
}

#[tokio::test]
async fn browser_removes_the_row_of_a_node_that_is_deleted() {
    let stage = Stage::new().await;
    let node = stage.node("n1", |_| {}).await;
    active(&stage, "n2").await;
    let browser = signed_in(&stage.url, "rita", Scripts::Run).await;
    assert!(browser.has(&row(&node)).await.unwrap());
    stage.conductor.remove_node("n1").await.unwrap();
    browser.wait_for("#states", "All 1").await.unwrap();
    assert!(!browser.has(&row(&node)).await.unwrap());
}

#[tokio::test]
async fn browser_whose_stream_is_cut_says_so_and_shows_later_what_has_changed_meanwhile() {
    let stage = Stage::new().await;
    let node = active(&stage, "n1").await;
    let line = Line::to(&stage.url).await;
    let browser = signed_in(&line.url, "rita", Scripts::Run).await;
    line.cut();
    browser.wait_for("#news", "The conductor does not answer. This page tries again.").await.unwrap();
    maintenance(&stage, &node, true).await;
    assert!(!browser.text_of(&row(&node)).await.unwrap().contains("maintenance"));
    line.lead_to(&stage.url);
    browser.wait_for(&row(&node), "in maintenance").await.unwrap();
    assert_eq!(browser.run("return document.getElementById('news').textContent").await.unwrap(), json!(""));
}

#[tokio::test]
async fn browser_drops_an_event_that_is_late() {
    let stage = Stage::new().await;
    let node = active(&stage, "n1").await;
    let browser = signed_in(&stage.url, "rita", Scripts::Run).await;
    browser.tool("Page.addScriptToEvaluateOnNewDocument", json!({"source": KEPT_STREAM})).await.unwrap();
    browser.follow("Nodes").await.unwrap();
    let version = async || browser.attribute(&row(&node), "data-version").await.unwrap().unwrap();
    let old = version().await;
    maintenance(&stage, &node, true).await;
    browser.wait_for(&row(&node), "in maintenance").await.unwrap();
    let new = version().await;
    assert_ne!(old, new);
    let event = async |version: &str| {
        let data = format!("n-{} {version}", node.uuid);
        let send = format!("window.kept.dispatchEvent(new MessageEvent('message', {{ data: '{data}' }}))");
        browser.run(&send).await.unwrap();
    };
    // One about what the page shows asks for nothing; one about what it has shown changes nothing.
    event(&new).await;
    event(&new).await;
    assert_eq!(fetched(&browser).await.len(), 1);
    event(&old).await;
    eventually("the row to be fetched again", async || fetched(&browser).await.len() == 2).await;
    assert!(browser.text_of(&row(&node)).await.unwrap().contains("in maintenance"));
    assert_eq!(version().await, new);
}

#[tokio::test]
async fn browser_of_somebody_who_watches_a_conductor_that_stops_and_starts_asks_for_the_login() {
    let (stage, next) = (Stage::new().await, Stage::new().await);
    active(&stage, "n1").await;
    let line = Line::to(&stage.url).await;
    let browser = signed_in(&line.url, "rita", Scripts::Run).await;
    stage.conductor.drain().await;
    line.cut();
    browser.wait_for("#news", "The conductor does not answer.").await.unwrap();
    assert!(browser.text_of("table").await.unwrap().contains("n1"), "what was shown stays");
    // Sessions end with the conductor.
    line.lead_to(&next.url);
    browser.wait_for("#news", "This page shows no changes any more. Load it again").await.unwrap();
    browser.follow("Nodes").await.unwrap();
    super::sign_in(&browser, "rita").await;
}

#[tokio::test]
async fn browser_that_shows_a_node_says_so_when_it_is_deleted() {
    let stage = Stage::new().await;
    stage.node("n1", |_| {}).await;
    let browser = signed_in(&stage.url, "rita", Scripts::Run).await;
    browser.follow("n1").await.unwrap();
    stage.conductor.remove_node("n1").await.unwrap();
    browser.wait_for("#news", "The node does not exist any more.").await.unwrap();
    assert!(browser.text_of("h1").await.unwrap().contains("n1"), "what was shown stays");
}

/// What a user types outlives the progress of a step, and not the state that the form was made for.
#[tokio::test]
async fn browser_keeps_what_is_typed_while_an_operation_goes_on() {
    let stage = Stage::new().await;
    let node = stage.node("n1", |node| node.provision_state = ProvisionState::DeployWait).await;
    let browser = signed_in(&stage.url, "anna", Scripts::Run).await;
    browser.follow("n1").await.unwrap();
    browser.click("details:has(form[action$='/orders/undeploy']) > summary").await.unwrap();
    browser.fill("#undeploy-confirm", "n1").await.unwrap();
    let version = browser.attribute("#standing", "data-version").await.unwrap().unwrap();
    stage.conductor.events().push(node.uuid, EventKind::WriteStarted);
    browser.wait_for("#standing", "wait call-back since").await.unwrap();
    let is_new =
        async || browser.attribute("#standing", "data-version").await.unwrap().as_ref() != Some(&version);
    eventually("another version", is_new).await;
    let typed = "const field = document.getElementById('undeploy-confirm');
        return [field.value, document.activeElement === field, field.closest('details').open]";
    assert_eq!(browser.run(typed).await.unwrap(), json!(["n1", true, true]));
}

#[tokio::test]
async fn browser_shows_the_progress_of_a_node_on_each_of_its_pages() {
    let stage = Stage::new().await;
    let node = active(&stage, "n1").await;
    let browser = signed_in(&stage.url, "rita", Scripts::Run).await;
    for (end, begins) in [("", true), ("/timeline", false), ("/history", true)] {
        browser.go(&format!("{}/page/nodes/n1{end}", stage.url)).await.unwrap();
        maintenance(&stage, &node, begins).await;
        let is_marked = if begins { "Needs an operator" } else { "active since" };
        browser.wait_for("#standing", is_marked).await.unwrap();
    }
}
