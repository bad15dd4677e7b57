//! What machines and users write, which may be anything.

use crate::markup::text;
use crate::nodes::PAGES;
use crate::stage::Stage;
use farrier_conductor::model::{Node, ProvisionState};
use serde_json::{Value, json};

/// Names that no interface accepts, but that a record may have.
pub const NAMES: [&str; 7] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "&lt;script&gt;",
    "حصان-١",
    "\u{202E}edoc\u{2066}",
    "9999999999999999999999999999999999999999",
];

/// A node that says the same wherever a text may be.
pub fn hostile(node: &mut Node, text: &str) {
    let digits: Value = serde_json::from_str(&"9".repeat(40)).unwrap();
    node.provision_state = ProvisionState::CleanFailed;
    node.last_error = Some(format!("{text} {}", "x".repeat(4000 - text.len())));
    node.description = Some(text.to_owned());
    node.owner = Some(text.to_owned());
    node.instance_name = Some(text.to_owned());
    node.resource_class = Some(text.to_owned());
    (node.maintenance, node.maintenance_reason) = (true, Some(text.to_owned()));
    (node.protected, node.protected_reason) = (true, Some(text.to_owned()));
    node.extra = [(text.to_owned(), json!([text])), ("digits".to_owned(), digits)].into_iter().collect();
    node.traits = vec![text.to_owned()];
}

#[tokio::test]
async fn names_that_are_scripts_or_run_from_right_to_left_are_texts() {
    let stage = Stage::new().await;
    let browser = stage.signed_in("anna").await;
    for name in NAMES {
        let node = stage.node(name, |node| hostile(node, name)).await;
        for end in PAGES {
            // Each page is checked for elements and attributes that it must not have.
            let body = browser.page(&format!("/page/nodes/{}{end}", node.uuid)).await.body;
            assert!(text(&body).contains(name), "{end}: {body}");
            assert!(body.matches("<bdi>").count() == body.matches("</bdi>").count());
        }
        let overview = browser.page(&format!("/page/nodes/{}", node.uuid)).await;
        assert!(text(&overview.body).contains(&"x".repeat(3900)), "the error is whole");
        assert!(text(&overview.body).contains("digits: "), "{}", overview.body);
        let order = overview.form("/orders/manage");
        browser.submit(&order, &[]).await.expect(303);
    }
    let list = browser.page("/page/").await.body;
    for name in NAMES {
        assert!(text(&list).contains(name), "{name}");
    }
    assert_eq!(list.matches("<tr").count(), NAMES.len() + 1);
}

#[tokio::test]
async fn addresses_and_forms_may_have_anything() {
    let stage = Stage::new().await;
    let node = stage.node("n1", |_| {}).await;
    let browser = stage.signed_in("anna").await;
    let digits = "9".repeat(40);
    for path in [
        format!("/page/?after=others.{}.{digits}", node.uuid),
        format!("/page/?after=others.{}.%00", node.uuid),
        format!("/page/?q={digits}"),
        "/page/?q=%FF%FE%00".to_owned(),
        "/page/?q=%3Cscript%3E".to_owned(),
        format!("/page/nodes/{}?ordered=%3Cscript%3E", node.uuid),
        format!("/page/nodes/{digits}"),
        "/page/nodes/%3Cscript%3E".to_owned(),
        "/page/nodes/%2e%2e%2f".to_owned(),
        "/page/nodes/a%00b/history".to_owned(),
    ] {
        let status = browser.get(&path).await.status;
        assert!([200, 400, 404].contains(&status), "{path}: {status}");
    }
    let form = browser.page(&format!("/page/nodes/{}", node.uuid)).await.form("/orders/manage");
    let mut long = form.fields.clone();
    long.push(("x".to_owned(), "y".repeat(70_000)));
    browser.post(&form.action, &long).await.expect(400);
    for seen in [digits.as_str(), "available", &format!("available.{digits}.false.false")] {
        browser.submit(&form, &[("seen", seen)]).await.expect(400);
    }
}
