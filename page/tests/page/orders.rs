//! Orders by forms: who may give them, when, and what happens when two give them.

use crate::browser::Browser;
use crate::forms::Form;
use crate::markup::text;
use crate::nodes::PAGES;
use crate::stage::Stage;
use farrier_conductor::model::{Node, ProvisionState};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Longest wait for a conductor.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nodes in every state, with maintenance and without.
async fn nodes(stage: &Stage) -> Vec<Node> {
    let mut nodes = Vec::new();
    for (number, state) in ProvisionState::ALL.iter().enumerate() {
        for maintenance in [false, true] {
            let change = |node: &mut Node| (node.provision_state, node.maintenance) = (*state, maintenance);
            nodes.push(stage.node(&format!("n{number}-{maintenance}"), change).await);
        }
    }
    nodes
}

/// The orders on all pages of a node.
async fn orders(browser: &Browser, node: &Node) -> Vec<Form> {
    let mut found = Vec::new();
    for end in PAGES {
        let page = browser.page(&format!("/page/nodes/{}{end}", node.uuid)).await;
        found
            .extend(page.forms().into_iter().filter(|form| form.is_post && form.action.contains("/orders/")));
    }
    found
}

fn name_of(order: &Form) -> String {
    order.action.rsplit('/').next().unwrap().to_owned()
}

#[tokio::test]
async fn no_order_is_given_by_a_reader_nor_without_the_token_of_its_form() {
    let stage = Stage::new().await;
    let (anna, ben, rita) =
        (stage.signed_in("anna").await, stage.signed_in("ben").await, stage.signed_in("rita").await);
    let mut seen = BTreeSet::new();
    for node in nodes(&stage).await {
        for order in orders(&rita, &node).await {
            let (name, confirm) = (name_of(&order), node.label());
            let fields: Vec<_> = order.fields.iter().map(|(field, _)| field.as_str()).collect();
            let fill = if fields.contains(&"confirm") { vec![("confirm", confirm.as_str())] } else { vec![] };
            let answer = rita.submit(&order, &fill).await.expect(403);
            assert!(text(&answer.body).contains("which may only look"), "{name}");
            for token in [None, Some(""), Some("00")] {
                let mut fields = order.without("form_token");
                fields.extend(token.map(|token| ("form_token".to_owned(), token.to_owned())));
                anna.post(&order.action, &fields).await.expect(403);
            }
            // One that was made for another browser, whoever uses that.
            ben.submit(&order, &fill).await.expect(403);
            seen.insert(name);
        }
        assert_eq!(stage.read(&node).await.provision_state, node.provision_state);
        assert!(stage.conductor.find(&node.uuid.to_string()).await.unwrap().order.is_none());
    }
    let expected = "abort adopt clean deploy end-maintenance inspect maintenance manage power-off power-on provide reboot \
        rebuild rescue retry soft-power-off soft-reboot undeploy unhold unrescue";
    assert_eq!(seen.into_iter().collect::<Vec<_>>().join(" "), expected);
    // The forms beside the orders, too.
    let out = rita.page("/page/").await.form("/page/sign-out");
    rita.post(&out.action, &out.without("form_token")).await.expect(403);
    let form = rita.page("/page/sign-in").await.form("/page/sign-in");
    rita.post(&form.action, &form.without("form_token")).await.expect(403);
}

#[tokio::test]
async fn an_order_that_may_lose_data_needs_the_name_of_its_node() {
    let stage = Stage::new().await;
    let anna = stage.signed_in("anna").await;
    for (state, order, after) in [
        (ProvisionState::Manageable, "clean", ProvisionState::Cleaning),
        (ProvisionState::Active, "undeploy", ProvisionState::Deleting),
    ] {
        let node = stage.node(&format!("to-{order}"), |node| node.provision_state = state).await;
        let page = anna.page(&format!("/page/nodes/{}", node.uuid)).await;
        let form = page.form(&format!("/orders/{order}"));
        assert!(text(&page.body).contains(&format!("{}, to confirm", node.label())), "{}", page.body);
        for typed in ["", "TO-CLEAN", "to", &node.uuid.to_string()] {
            let answer = anna.submit(&form, &[("confirm", typed)]).await.expect(400);
            let said = text(&answer.body);
            assert!(said.contains("Nothing was ordered") && said.contains("Type the name"), "{said}");
            assert_eq!(stage.read(&node).await.provision_state, state);
        }
        let answer = anna.submit(&form, &[("confirm", &node.label())]).await.expect(303);
        assert_eq!(answer.location(), format!("/page/nodes/{}?ordered={order}", node.uuid));
        let history = stage.store_history(&node).await;
        assert!(
            history
                .iter()
                .any(|(user, event)| user.as_deref() == Some("anna") && event.contains(after.as_str())),
            "{history:?}"
        );
    }
}

#[tokio::test]
async fn of_two_operators_the_second_learns_what_the_first_has_ordered() {
    let stage = Stage::new().await;
    let (anna, ben) = (stage.signed_in("anna").await, stage.signed_in("ben").await);
    let node = stage.node("n1", |node| node.provision_state = ProvisionState::Available).await;
    let path = format!("/page/nodes/{}", node.uuid);
    let first = anna.page(&path).await.form("/orders/manage");
    let second = ben.page(&path).await.form("/orders/deploy");
    anna.submit(&first, &[]).await.expect(303);
    let answer = ben.submit(&second, &[("confirm", "n1")]).await.expect(409);
    let said = text(&answer.body);
    assert!(
        said.contains(
            "Node n1 has changed since its page was loaded: it was available, and is manageable now. \
            User anna gave it the last order."
        ),
        "{said}"
    );
    assert!(said.contains("Nothing was ordered"), "{said}");
    assert!(answer.body.contains(&format!("href=\"{path}\"")));
    assert_eq!(stage.read(&node).await.provision_state, ProvisionState::Manageable);
    // The same order once more, as by a second click.
    anna.submit(&first, &[]).await.expect(409);
}

#[tokio::test]
async fn two_orders_at_the_same_moment_are_one_order_and_one_message() {
    let stage = Stage::new().await;
    let (anna, ben) = (stage.signed_in("anna").await, stage.signed_in("ben").await);
    for number in 0..8 {
        let node =
            stage.node(&format!("n{number}"), |node| node.provision_state = ProvisionState::Manageable).await;
        let path = format!("/page/nodes/{}", node.uuid);
        let provide = anna.page(&path).await.form("/orders/provide");
        let adopt = ben.page(&path).await.form("/orders/adopt");
        let (one, other) = tokio::join!(anna.submit(&provide, &[]), ben.submit(&adopt, &[]));
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [303, 409], "{}\n{}", one.body, other.body);
        let refused = if one.status == 409 { one } else { other };
        assert!(text(&refused.body).contains("Nothing was ordered"), "{}", refused.body);
    }
}

#[tokio::test]
async fn an_order_that_the_state_does_not_allow_is_refused_though_it_was_not_offered() {
    let stage = Stage::new().await;
    let anna = stage.signed_in("anna").await;
    let node = stage.node("n1", |node| node.provision_state = ProvisionState::Available).await;
    let form = anna.page(&format!("/page/nodes/{}", node.uuid)).await.form("/orders/manage");
    for (order, status) in [("undeploy", 409), ("provide", 409), ("service", 404), ("done", 404)] {
        let action = form.action.replace("/manage", &format!("/{order}"));
        anna.post(&action, &form.fields).await.expect(status);
    }
    anna.post(&form.action, &form.without("seen")).await.expect(400);
    let request = anna.request(&form.action);
    anna.send(request).await.expect(405);
    assert_eq!(stage.read(&node).await.provision_state, ProvisionState::Available);
}

#[tokio::test]
async fn a_node_goes_from_enrolment_to_available_on_the_page_alone() {
    let stage = Stage::new().await;
    stage.run();
    let anna = stage.signed_in("anna").await;
    let node = stage.node("n1", |node| node.provision_state = ProvisionState::Enroll).await;
    let path = format!("/page/nodes/{}", node.uuid);
    for (order, state) in [("manage", "manageable"), ("provide", "available")] {
        let form = anna.page(&path).await.form(&format!("/orders/{order}"));
        let answer = anna.submit(&form, &[]).await.expect(303);
        let page = anna.page(answer.location()).await;
        assert!(text(&page.body).to_lowercase().contains(&format!("the order \"{order}\" was accepted")));
        let end = Instant::now() + PATIENCE;
        while !text(&anna.page(&path).await.body).contains(&format!("{state} since")) {
            assert!(Instant::now() < end, "waited for {state}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let timeline = text(&anna.page(&format!("{path}/timeline")).await.body);
    for state in ["available", "manageable", "verifying", "enroll"] {
        assert!(timeline.contains(&format!("{state}From ")), "{state}: {timeline}");
    }
    assert!(timeline.contains("ordered by anna"), "{timeline}");
    let history = text(&anna.page(&format!("{path}/history")).await.body);
    assert!(
        history.contains("from \"manageable\" to \"available\"") && history.contains("anna"),
        "{history}"
    );
}
