//! The page about all nodes.

use crate::markup::{attribute, elements, text};
use crate::stage::Stage;
use farrier_conductor::model::clock::Clock;
use farrier_conductor::model::{Fault, Node, ProvisionState};
use std::time::{Duration, Instant};

/// Longest wait for a conductor.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn an_estate_without_nodes_has_its_page() {
    let stage = Stage::new().await;
    let shown = text(&stage.signed_in("rita").await.page("/page/estate").await.body);
    for part in
        ["No operation failed.", "No step ended.", "There are no nodes yet.", "No node waits", "Conductors"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[tokio::test]
async fn an_estate_names_bmcs_that_refuse_and_the_longest_waits() {
    let stage = Stage::new().await;
    let now = stage.clock.now();
    for (name, minutes) in [("late", 1), ("early", 9)] {
        stage
            .node(name, |node| {
                node.provision_state = ProvisionState::DeployWait;
                node.provision_updated_at = now - time::Duration::minutes(minutes);
            })
            .await;
    }
    stage.node("silent", |node| (node.maintenance, node.fault) = (true, Some(Fault::Power))).await;
    stage.node("strange", |node: &mut Node| node.driver = "of no conductor".to_owned()).await;
    let page = stage.signed_in("rita").await.page("/page/estate").await;
    let shown = text(&page.body);
    let (refusing, others) = shown.split_once("Longest waits").unwrap();
    assert!(refusing.contains("silent") && !refusing.contains("early"), "{refusing}");
    let place = |name: &str| others.find(name).unwrap_or_else(|| panic!("{name}: {others}"));
    assert!(place("early") < place("late") && !others.contains("silent"), "{others}");
    assert!(shown.contains("Nodes that no conductor serves: 1."), "{shown}");
    let links: Vec<_> = elements(&page.body, "a").iter().filter_map(|link| attribute(link, "href")).collect();
    assert!(links.contains(&"/page/?fault=power+failure".to_owned()), "{links:?}");
    let list = stage.signed_in("rita").await.page("/page/?fault=power+failure").await;
    assert!(text(&list.body).contains("silent") && !text(&list.body).contains("strange"));
}

#[tokio::test]
async fn an_estate_tells_of_deployments_by_the_histories_of_its_nodes() {
    let stage = Stage::with_fake_hardware().await;
    stage.run();
    let node = stage.node("n1", |node| node.provision_state = ProvisionState::Enroll).await;
    let anna = stage.signed_in("anna").await;
    for (order, state, confirm) in
        [("manage", "manageable", ""), ("provide", "available", ""), ("deploy", "active", "n1")]
    {
        let form = anna.page("/page/nodes/n1").await.form(&format!("/orders/{order}"));
        let fields = if confirm.is_empty() { vec![] } else { vec![("confirm", confirm)] };
        anna.submit(&form, &fields).await.expect(303);
        let end = Instant::now() + PATIENCE;
        while stage.read(&node).await.provision_state.as_str() != state {
            assert!(Instant::now() < end, "waited for {state}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let shown = text(&anna.page("/page/estate").await.body);
    for part in
        ["Deployments that succeeded: 1.", "Deployments that failed: 0.", "Median of those that succeeded"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}
