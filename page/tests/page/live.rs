//! Changes that a page shows while somebody looks at it: the stream that names them, and the parts that it fetches.

use crate::browser::{Answer, Browser};
use crate::markup::{attribute, elements, text};
use crate::stage::Stage;
use farrier_conductor::model::{Node, ProvisionState};
use reqwest::Response;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;
use uuid::Uuid;

/// Longest wait for an event.
const PATIENCE: Duration = Duration::from_secs(60);

/// A stream as a browser reads it.
struct Stream {
    response: Response,
    text: String,
}

impl Stream {
    async fn open(browser: &Browser, path: &str) -> Self {
        let response = browser.open(path).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// The parts of the next event with their versions; nothing at the end of the stream.
    async fn next(&mut self) -> Option<BTreeMap<String, String>> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let lines = event.lines().filter_map(|line| line.strip_prefix("data: "));
                let pair = |line: &str| {
                    line.split_once(' ').map(|(id, version)| (id.to_owned(), version.to_owned()))
                };
                let parts: BTreeMap<_, _> = lines.filter_map(pair).collect();
                self.text = rest.to_owned();
                if !parts.is_empty() {
                    return Some(parts);
                }
            }
            let chunk = timeout(PATIENCE, self.response.chunk()).await.unwrap().ok()??;
            self.text += std::str::from_utf8(&chunk).unwrap();
        }
    }
}

/// The parts of a page with their versions.
fn parts(page: &Answer) -> BTreeMap<String, String> {
    let all = ["tr", "nav", "p"].into_iter().flat_map(|name| elements(&page.body, name));
    all.filter_map(|part| Some((attribute(part, "id")?, attribute(part, "data-version")?))).collect()
}

/// The address of a page's stream, as its script makes it.
fn stream_of(page: &Answer) -> String {
    let main = elements(&page.body, "main")[0];
    let ids: String = parts(page).keys().map(|id| format!("&part={id}")).collect();
    attribute(main, "data-events").unwrap() + &ids
}

async fn parts_of(browser: &Browser, page: &Answer, ids: &[&str]) -> Answer {
    let main = elements(&page.body, "main")[0];
    let ids: String = ids.iter().map(|id| format!("&part={id}")).collect();
    browser.fragment(&(attribute(main, "data-parts").unwrap() + &ids)).await.expect(200)
}

async fn three(stage: &Stage) -> [Node; 3] {
    let node =
        async |name: &str| stage.node(name, |node| node.provision_state = ProvisionState::Active).await;
    [node("n1").await, node("n2").await, node("n3").await]
}

async fn begin_maintenance(stage: &Stage, node: &Node) {
    stage.conductor.set_maintenance(&node.uuid.to_string(), true, Some("fan".to_owned())).await.unwrap();
}

#[tokio::test]
async fn a_row_that_changes_is_named_and_fetched_and_the_others_are_not() {
    let stage = Stage::new().await;
    let nodes = three(&stage).await;
    let browser = stage.signed_in("rita").await;
    let page = browser.page("/page/?sort=name&state=active").await;
    let mut stream = Stream::open(&browser, &stream_of(&page)).await;
    // The first event has what the page shows already: an event that comes late changes nothing.
    assert_eq!(stream.next().await.unwrap(), parts(&page));
    begin_maintenance(&stage, &nodes[1]).await;
    let changed = stream.next().await.unwrap();
    let id = format!("n-{}", nodes[1].uuid);
    assert_eq!(changed.keys().collect::<Vec<_>>(), [&id]);
    let fetched = parts_of(&browser, &page, &[&id, "states"]).await;
    assert_eq!(parts(&fetched)[&id], changed[&id]);
    assert_eq!(parts(&fetched)["states"], parts(&page)["states"]);
    assert!(text(&fetched.body).contains("Needs an operator: in maintenance"), "{}", fetched.body);
    assert!(fetched.body.contains("/page/?state=active&amp;sort=name") || fetched.body.contains("sort=name"));
    assert!(!fetched.body.contains(&nodes[0].uuid.to_string()));
}

#[tokio::test]
async fn a_stream_that_was_cut_names_what_has_changed_meanwhile() {
    let stage = Stage::new().await;
    let nodes = three(&stage).await;
    let browser = stage.signed_in("rita").await;
    let page = browser.page("/page/").await;
    let address = stream_of(&page);
    let mut stream = Stream::open(&browser, &address).await;
    assert_eq!(stream.next().await.unwrap(), parts(&page));
    drop(stream);
    begin_maintenance(&stage, &nodes[2]).await;
    stage.conductor.remove_node("n1").await.unwrap_err();
    let mut again = Stream::open(&browser, &address).await;
    let (before, after) = (parts(&page), again.next().await.unwrap());
    let differs = |id: &&String| before.get(*id) != after.get(*id);
    assert_eq!(after.keys().filter(differs).collect::<Vec<_>>(), [&format!("n-{}", nodes[2].uuid)]);
}

#[tokio::test]
async fn a_node_that_is_deleted_leaves_the_list() {
    let stage = Stage::new().await;
    let node = stage.node("n1", |_| {}).await;
    let browser = stage.signed_in("rita").await;
    let page = browser.page("/page/").await;
    let mut stream = Stream::open(&browser, &stream_of(&page)).await;
    stream.next().await.unwrap();
    stage.conductor.remove_node("n1").await.unwrap();
    let id = format!("n-{}", node.uuid);
    assert_eq!(stream.next().await.unwrap()[&id], "gone");
    let fetched = parts_of(&browser, &page, &[&id]).await;
    assert!(fetched.body.contains(&format!("hx-target=\"#{id}\" hx-swap=\"delete\"")), "{}", fetched.body);
}

#[tokio::test]
async fn the_stream_of_a_node_tells_of_its_state_and_of_its_progress() {
    let stage = Stage::new().await;
    let [node, ..] = three(&stage).await;
    let browser = stage.signed_in("rita").await;
    let page = browser.page(&format!("/page/nodes/{}", node.uuid)).await;
    let mut stream = Stream::open(&browser, &stream_of(&page)).await;
    let first = stream.next().await.unwrap();
    assert_eq!(first["standing"], parts(&page)["standing"]);
    stage.conductor.events().push(node.uuid, farrier_conductor::task::event::EventKind::WriteStarted);
    let progress = stream.next().await.unwrap();
    assert_ne!(progress["standing"], first["standing"]);
    begin_maintenance(&stage, &node).await;
    assert_ne!(stream.next().await.unwrap()["standing"], progress["standing"]);
    // Each page fetches the parts that it shows, and no page asks a machine for them.
    for (end, fetched, ids) in [
        ("", "", &["standing", "told", "orders"][..]),
        ("/timeline", "/timeline", &["standing", "life"][..]),
        ("/interfaces", "/timeline", &["standing"][..]),
    ] {
        let path = format!("/page/nodes/{}", node.uuid);
        let page = browser.page(&format!("{path}{end}")).await;
        let from = attribute(elements(&page.body, "main")[0], "data-page").unwrap();
        assert_eq!(from, format!("{path}{fetched}"));
        let fresh = browser.page(&from).await.body;
        assert!(ids.iter().all(|id| fresh.contains(&format!("id=\"{id}\""))), "{end}: {fresh}");
    }
}

#[tokio::test]
async fn a_conductor_that_stops_ends_its_streams() {
    let stage = Stage::new().await;
    let browser = stage.signed_in("rita").await;
    let mut stream = Stream::open(&browser, "/page/events?part=states").await;
    stream.next().await.unwrap();
    stage.conductor.drain().await;
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn a_page_that_is_left_open_keeps_no_session_and_its_login_is_asked_for_again() {
    let stage = Stage::new().await;
    let browser = stage.signed_in("rita").await;
    let paths = ["/page/events?part=states", "/page/parts?part=states"];
    stage.clock.jump(time::Duration::minutes(59));
    for path in paths {
        assert_eq!(browser.open(path).await.status(), 200);
    }
    stage.clock.jump(time::Duration::minutes(2));
    for path in paths {
        assert_eq!(browser.open(path).await.status(), 401);
    }
}

#[tokio::test]
async fn addresses_of_parts_that_no_page_has_are_refused() {
    let stage = Stage::new().await;
    let browser = stage.signed_in("rita").await;
    let many: String = (0..201).map(|number| format!("&part=n-{}", Uuid::from_u128(number))).collect();
    for path in [
        "/page/events?part=x".to_owned(),
        format!("/page/events?part=n-{}", "9".repeat(40)),
        "/page/events?node=n1".to_owned(),
        format!("/page/events?x=y{many}"),
        format!("/page/parts?x=y{many}"),
        "/page/parts?part=%00".to_owned(),
        "/page/parts?list=x%3Dy".to_owned(),
    ] {
        assert_eq!(browser.open(&path).await.status(), 400, "{path}");
    }
    assert_eq!(browser.fragment("/page/parts").await.status, 200);
}
