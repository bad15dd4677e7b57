//! One order for many nodes.

use crate::browser::Answer;
use crate::forms::Form;
use crate::markup::text;
use crate::stage::Stage;
use farrier_conductor::model::{Node, PowerState, ProvisionState};

/// The address of the preview for these nodes.
fn preview(order: &str, nodes: &[&Node]) -> String {
    let nodes: String = nodes.iter().map(|node| format!("&node={}", node.uuid)).collect();
    format!("/page/many?order={order}{nodes}")
}

fn order(page: &Answer) -> Form {
    page.form("/page/many")
}

async fn node(stage: &Stage, name: &str, state: ProvisionState) -> Node {
    stage.node(name, |node| node.provision_state = state).await
}

#[tokio::test]
async fn a_preview_names_who_is_affected_and_why_some_are_not() {
    let stage = Stage::new().await;
    let anna = stage.signed_in("anna").await;
    let ready = node(&stage, "ready", ProvisionState::Manageable).await;
    let also = node(&stage, "also", ProvisionState::Manageable).await;
    let active = node(&stage, "active", ProvisionState::Active).await;
    let retired = stage
        .node("retired", |node| (node.provision_state, node.retired) = (ProvisionState::Manageable, true))
        .await;
    let page = anna.page(&preview("provide", &[&ready, &also, &active, &retired])).await;
    let shown = text(&page.body);
    for part in [
        "Selected: 4 nodes. The order is for 2 nodes, and not for 2 nodes.",
        "2 nodes: The node is available at once.",
        "The node is active, a state without this order.",
        "node retired is retired",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let answer = anna.submit(&order(&page), &[]).await.expect(200);
    assert!(text(&answer.body).contains("The order was accepted for 2 nodes."), "{}", answer.body);
    for (node, state) in
        [(&ready, "available"), (&also, "available"), (&active, "active"), (&retired, "manageable")]
    {
        assert_eq!(stage.read(node).await.provision_state.as_str(), state, "{}", node.label());
    }
    // The same form once more: each node has changed since.
    let answer = anna.submit(&order(&page), &[]).await.expect(200);
    let shown = text(&answer.body);
    assert!(
        shown.contains("The order was refused for 2 nodes.") && shown.contains("has changed since"),
        "{shown}"
    );
}

#[tokio::test]
async fn all_nodes_of_the_list_are_those_of_its_filters() {
    let stage = Stage::new().await;
    let anna = stage.signed_in("anna").await;
    for number in 0..120 {
        node(&stage, &format!("rack1-{number}"), ProvisionState::Active).await;
    }
    let other = node(&stage, "rack2-1", ProvisionState::Active).await;
    let list = anna.page("/page/?q=rack1&sort=name").await;
    let form = list.form("/page/many");
    assert_eq!(form.fields.iter().find(|(name, _)| name == "list").unwrap().1, "q=rack1&sort=name");
    let page = anna.page("/page/many?order=maintenance&list=q%3Drack1&all=yes").await;
    assert!(text(&page.body).contains("The order is for 120 nodes"), "{}", page.body);
    let answer = anna.submit(&order(&page), &[("reason", "rack 1 moves")]).await.expect(200);
    assert!(text(&answer.body).contains("accepted for 120 nodes"), "{}", answer.body);
    assert!(!stage.read(&other).await.maintenance);
    let moved = stage.conductor.node("rack1-7").await.unwrap();
    assert_eq!(moved.maintenance_reason.as_deref(), Some("rack 1 moves"));
}

#[tokio::test]
async fn an_order_for_many_that_may_lose_data_needs_their_number() {
    let stage = Stage::new().await;
    let anna = stage.signed_in("anna").await;
    let first = node(&stage, "n1", ProvisionState::Manageable).await;
    let second = node(&stage, "n2", ProvisionState::Manageable).await;
    let page = anna.page(&preview("clean", &[&first, &second])).await;
    assert!(text(&page.body).contains("Data may be lost."), "{}", page.body);
    for typed in ["", "1", "n1", "22", &"9".repeat(40)] {
        let answer = anna.submit(&order(&page), &[("confirm", typed)]).await.expect(400);
        assert!(text(&answer.body).contains("Nothing was ordered"), "{}", answer.body);
        assert_eq!(stage.read(&first).await.provision_state, ProvisionState::Manageable);
    }
    anna.submit(&order(&page), &[("confirm", "2")]).await.expect(200);
    assert_eq!(stage.read(&second).await.provision_state, ProvisionState::Cleaning);
}

#[tokio::test]
async fn many_nodes_are_ordered_by_no_reader_and_not_without_the_token_of_the_form() {
    let stage = Stage::new().await;
    let (anna, rita) = (stage.signed_in("anna").await, stage.signed_in("rita").await);
    let on = stage.node("n1", |node| node.power_state = Some(PowerState::On)).await;
    for name in [
        "power-on",
        "power-off",
        "reboot",
        "soft-power-off",
        "soft-reboot",
        "provide",
        "clean",
        "maintenance",
        "end-maintenance",
    ] {
        let page = rita.page(&preview(name, &[&on])).await;
        let Some(form) = page.forms().into_iter().find(|form| form.action == "/page/many" && form.is_post)
        else {
            continue;
        };
        rita.submit(&form, &[]).await.expect(403);
        anna.post(&form.action, &form.without("form_token")).await.expect(403);
        anna.submit(&form, &[]).await.expect(403);
    }
    assert!(stage.conductor.find("n1").await.unwrap().order.is_none());
}

#[tokio::test]
async fn what_was_not_selected_in_the_list_is_refused() {
    let stage = Stage::new().await;
    let anna = stage.signed_in("anna").await;
    let gone = node(&stage, "n1", ProvisionState::Manageable).await;
    let page = anna.page(&preview("provide", &[&gone])).await;
    stage.conductor.remove_node("n1").await.unwrap();
    let answer = anna.submit(&order(&page), &[]).await.expect(200);
    assert!(text(&answer.body).contains("Deleted meanwhile: 1 node."), "{}", answer.body);
    for (path, status) in [
        ("/page/many?order=undeploy", 404),
        ("/page/many", 404),
        ("/page/many?order=provide&node=x", 400),
        ("/page/many?order=provide&all=yes&list=x%3Dy", 400),
    ] {
        anna.get(path).await.expect(status);
    }
    let none = anna.page("/page/many?order=provide").await;
    assert!(text(&none.body).contains("Selected: 0 nodes."), "{}", none.body);
    for number in 0..501 {
        node(&stage, &format!("m{number}"), ProvisionState::Manageable).await;
    }
    let answer = anna.get("/page/many?order=provide&all=yes&list=").await.expect(400);
    assert!(text(&answer.body).contains("at most 500 nodes"), "{}", answer.body);
}
