//! The list: what it shows, in which order, and how it is gone through.

use crate::browser::{Answer, Browser};
use crate::markup::{attribute, elements, text};
use crate::stage::Stage;
use farrier_conductor::model::{Fault, ProvisionState};

/// The names of the nodes in a page of the list, in their order.
fn names(page: &Answer) -> Vec<String> {
    let rows = page.body.split("<th scope=\"row\">").skip(1);
    rows.map(|row| text(row.split("</th>").next().unwrap())).collect()
}

/// The address of the next page.
fn next(page: &Answer) -> Option<String> {
    let links = elements(&page.body, "a");
    let next = links.iter().find(|link| attribute(link, "rel").as_deref() == Some("next"))?;
    attribute(next, "href")
}

async fn walk(browser: &Browser, path: &str) -> Vec<String> {
    let (mut found, mut path) = (Vec::new(), Some(path.to_owned()));
    while let Some(address) = path {
        let page = browser.page(&address).await;
        let part = names(&page);
        assert!(part.len() <= 100, "{} rows", part.len());
        found.extend(part);
        path = next(&page);
    }
    found
}

#[tokio::test]
async fn a_long_list_is_gone_through_once_and_begins_with_those_that_need_an_operator() {
    let stage = Stage::new().await;
    let (mut failed, start) = (Vec::new(), time::OffsetDateTime::now_utc());
    for number in 0..250 {
        // More than a page of them, so that the border between both groups is within a page.
        let has_failed = number % 2 == 1 || number < 20;
        let name = format!("n{number:03}");
        stage
            .node(&name, |node| {
                node.created_at = start + time::Duration::seconds(number);
                node.instance_name = Some("database-primary".to_owned());
                node.provision_updated_at = start + time::Duration::seconds(1000 - number);
                node.provision_state =
                    if has_failed { ProvisionState::DeployFailed } else { ProvisionState::Active };
            })
            .await;
        if has_failed {
            failed.push(name);
        }
    }
    let browser = stage.signed_in("rita").await;
    let all: Vec<_> = (0..250).map(|number| format!("n{number:03}")).collect();
    let others: Vec<_> = all.iter().filter(|name| !failed.contains(name)).cloned().collect();
    let first = [failed.clone(), others.clone()].concat();
    assert_eq!(walk(&browser, "/page/").await, first);
    let backwards: Vec<_> = all.iter().rev().cloned().collect();
    for (path, expected) in [
        ("/page/?sort=name", &all),
        ("/page/?sort=newest", &backwards),
        ("/page/?sort=changed", &all),
        ("/page/?sort=waiting", &backwards),
        ("/page/?needs=operator", &failed),
        ("/page/?needs=none", &others),
        ("/page/?state=active&sort=name", &others),
    ] {
        assert_eq!(walk(&browser, path).await, *expected, "{path}");
    }
    let page = browser.page("/page/").await;
    assert!(page.body.len() < 74 << 10, "{} bytes, and the style sheet", page.body.len());
    let shown = text(&page.body);
    assert!(shown.contains("All 250"), "{shown}");
    assert!(shown.contains(&format!("deploy failed {}", failed.len())), "{shown}");
    assert_eq!(page.body.matches("Needs an operator</strong>").count(), 100);
}

#[tokio::test]
async fn nodes_are_found_by_what_is_known_of_them() {
    let stage = Stage::new().await;
    let rack = stage
        .node("rack1-u07", |node| {
            node.ports = vec![farrier_conductor::model::Port::new("52:54:00:ab:00:01".parse().unwrap())];
            (node.conductor_group, node.resource_class) = ("east".to_owned(), Some("large".to_owned()));
            (node.maintenance, node.fault) = (true, Some(Fault::Power));
        })
        .await;
    stage.node("rack2-u01", |node| node.owner = Some("o1".to_owned())).await;
    let browser = stage.signed_in("rita").await;
    let start = &rack.uuid.to_string()[..13];
    for (query, expected) in [
        ("q=rack1", "rack1-u07"),
        (&format!("q={start}"), "rack1-u07"),
        ("q=52-54-00-AB", "rack1-u07"),
        ("conductor_group=east", "rack1-u07"),
        ("fault=power+failure", "rack1-u07"),
        ("maintenance=yes", "rack1-u07"),
        ("maintenance=no", "rack2-u01"),
        ("resource_class=large", "rack1-u07"),
        ("owner=o1", "rack2-u01"),
        ("driver=fake&q=rack2", "rack2-u01"),
        ("needs=operator", "rack1-u07"),
        ("q=rack", "rack1-u07 rack2-u01"),
        ("q=%25", ""),
        ("q=' OR 1=1 --", ""),
        ("state=active", ""),
    ] {
        let page = browser.page(&format!("/page/?{query}")).await;
        assert_eq!(names(&page).join(" "), expected, "{query}");
    }
    let page = browser.page("/page/?maintenance=yes").await;
    assert!(text(&page.body).contains("in maintenance by power failure"), "{}", page.body);
    // The filters are in the form again, and in each address of the page.
    let page = browser.page("/page/?q=rack&owner=o1").await;
    assert!(page.body.contains("value=\"rack\"") && page.body.contains("value=\"o1\""));
    let links: Vec<_> =
        elements(&page.body, "a").into_iter().filter_map(|link| attribute(link, "href")).collect();
    assert!(links.iter().any(|link| link == "/page/?owner=o1&q=rack&state=available"), "{links:?}");
    for query in ["state=nowhere", "x=y", "after=operator.x.y", "sort=shoe"] {
        browser.get(&format!("/page/?{query}")).await.expect(400);
    }
}

#[tokio::test]
async fn a_cursor_of_a_node_that_is_gone_is_still_a_place() {
    let stage = Stage::new().await;
    for number in 0..102 {
        stage.node(&format!("n{number:03}"), |node| node.created_at += time::Duration::seconds(number)).await;
    }
    let browser = stage.signed_in("rita").await;
    let page = browser.page("/page/").await;
    let next = next(&page).unwrap();
    stage.conductor.remove_node("n099").await.unwrap();
    assert_eq!(names(&browser.page(&next).await), ["n100", "n101"]);
}
