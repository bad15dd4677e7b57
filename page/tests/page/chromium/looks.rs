//! How every kind of page looks: on a desk and on a phone, in light and dark, with texts that may be anything.

use super::signed_in;
use crate::bad_input::{NAMES, hostile};
use crate::nodes::{PAGES, inspected};
use crate::stage::Stage;
use farrier_conductor::model::{Node, Port, ProvisionState};
use farrier_tests::browser::{Chromium, Scripts, View};
use farrier_tests::environment;
use serde_json::json;
use std::path::{Path, PathBuf};

/// A name as long as a column of the record may have it, without a place to break.
fn long() -> String {
    "rack-17-unit-".repeat(19)
}

fn axe() -> PathBuf {
    environment::path("FARRIER_AXE")
}

/// A stage with nodes in every state, and with every text that is hard to show.
async fn full_stage() -> (Stage, Node) {
    let stage = Stage::new().await;
    for (number, state) in ProvisionState::ALL.iter().enumerate() {
        let change = |node: &mut Node| {
            node.provision_state = *state;
            node.instance_name = Some(format!("instance-{number}"));
            node.conductor_group = "rack-1".to_owned();
        };
        stage.node(&format!("r1-u{number:02}"), change).await;
    }
    for name in NAMES {
        stage.node(name, |node| hostile(node, name)).await;
    }
    let text = long();
    let node = stage
        .node(&text, |node| {
            hostile(node, &text);
            node.provision_state = ProvisionState::DeployFailed;
            node.ports = vec![Port::new("52:54:00:00:00:01".parse().unwrap())];
        })
        .await;
    let disk = |name: &str, size: u64| json!({"name": name, "size": size, "model": text, "serial": "9".repeat(40), "rotational": true});
    let inventory = json!({
        "system_vendor": {"manufacturer": text, "product_name": "Anvil 2", "serial_number": "9".repeat(40)},
        "memory": {"physical_mb": 65536},
        "disks": [disk("/dev/sda", 480_103_981_056), disk("/dev/sdb", 8_001_563_222_016)],
        "interfaces": [{"name": text, "mac_address": "52:54:00:00:00:01", "has_carrier": true}],
    });
    inspected(&stage, &node, inventory).await;
    (stage, node)
}

/// The paths of every kind of page, about a node that has all texts.
fn kinds(node: &Node) -> Vec<String> {
    let lists = [
        "/page/",
        "/page/?needs=operator&sort=name",
        "/page/?q=none-such",
        "/page/estate",
        "/page/many?order=clean&all=yes",
        "/page/many?order=power-off&all=yes",
        "/page/nodes/none",
        "/page/none",
    ];
    let of_node = PAGES.iter().map(|end| format!("/page/nodes/{}{end}", node.uuid));
    lists.into_iter().map(str::to_owned).chain(of_node).collect()
}

/// Opens what is folded, since it has to look well too.
const UNFOLD: &str = "for (const details of document.querySelectorAll('details')) details.open = true";

async fn faults(browser: &Chromium, axe: Option<&Path>, path: &str, found: &mut Vec<String>) {
    for view in View::ALL {
        browser.view(view).await.unwrap();
        let faults = match axe {
            Some(axe) => browser.accessibility_faults(axe).await.unwrap(),
            None => browser.layout_faults().await.unwrap(),
        };
        found.extend(faults.into_iter().map(|fault| format!("{path} ({}): {fault}", view.name())));
    }
}

async fn all_faults(axe: Option<&Path>) -> Vec<String> {
    let (stage, node) = full_stage().await;
    let mut found = Vec::new();
    let stranger = Chromium::start(Scripts::Run).await.unwrap();
    stranger.go(&format!("{}/page/sign-in", stage.url)).await.unwrap();
    faults(&stranger, axe, "/page/sign-in", &mut found).await;
    let browser = signed_in(&stage.url, "anna", Scripts::Run).await;
    for path in kinds(&node) {
        browser.go(&format!("{}{path}", stage.url)).await.unwrap();
        browser.run(UNFOLD).await.unwrap();
        faults(&browser, axe, &path, &mut found).await;
    }
    found
}

#[tokio::test]
async fn browser_shows_no_bar_no_cut_text_and_no_overlap_on_any_page() {
    let found = all_faults(None).await;
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test]
async fn browser_finds_nothing_with_axe_on_any_page() {
    let found = all_faults(Some(&axe())).await;
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A judge that finds nothing is worth nothing.
#[tokio::test]
async fn browser_finds_the_faults_of_a_page_that_has_them() {
    let browser = Chromium::start(Scripts::Run).await.unwrap();
    let page = "data:text/html,<body style='margin:0'><p style='width:3000px'>wide</p><div style='position:absolute;top:9px'>\
        over</div><div style='width:20px;height:20px;overflow:hidden'>muchtoolong</div><img src=x>";
    browser.go(page).await.unwrap();
    let layout = browser.layout_faults().await.unwrap().join("\n");
    for fault in ["horizontal scroll bar", "overlap", "is cut by"] {
        assert!(layout.contains(fault), "{fault}: {layout}");
    }
    let found = browser.accessibility_faults(&axe()).await.unwrap().join("\n");
    assert!(found.contains("image-alt") && found.contains("html-has-lang"), "{found}");
}

#[tokio::test]
async fn browser_runs_no_script_that_a_record_has() {
    let (stage, _) = full_stage().await;
    let browser = signed_in(&stage.url, "anna", Scripts::Run).await;
    // A window that a script had opened would make each further command fail.
    for name in NAMES {
        assert!(browser.text_of("table").await.unwrap().contains(name.trim()), "{name}");
    }
    assert_eq!(
        browser.run("return document.querySelectorAll('table script, table img').length").await.unwrap(),
        json!(0)
    );
}
