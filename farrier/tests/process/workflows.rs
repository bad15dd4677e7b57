//! Deploy templates and runbooks, as operators keep them.

use crate::agent::Script;
use crate::conductor::Conductor;
use crate::site::Site;

fn prints(conductor: &Conductor, arguments: &[&str]) -> (i32, String) {
    let (code, text) = conductor.client(arguments).prints();
    (code.unwrap(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn process_steps_are_kept_by_name_and_nodes_are_led_by_them() {
    let site = Site::new(Script::default()).await;
    let conductor = site.conductor("c1", "127.0.0.1:0");
    site.enrol(&conductor);
    for (kind, place) in [("template", "priority"), ("runbook", "order")] {
        let steps =
            format!(r#"[{{"interface": "deploy", "step": "erase_devices", "args": {{}}, "{place}": 1}}]"#);
        conductor.order(&[kind, "create", "CUSTOM_WIPED", "--steps", &steps]);
        let (code, text) = prints(&conductor, &[kind, "create", "CUSTOM_WIPED", "--steps", &steps]);
        assert!(code == 1 && text.contains("CUSTOM_WIPED"), "{code} {text}");
        let (_, text) = prints(&conductor, &[kind, "list"]);
        assert!(text.contains("CUSTOM_WIPED  deploy.erase_devices"), "{text}");
        let (_, text) = prints(&conductor, &[kind, "show", "CUSTOM_WIPED"]);
        assert!(text.contains(&format!("\"{place}\": 1")), "{text}");
    }
    conductor.order(&["node", "manage", "n1"]);
    let (code, text) = prints(&conductor, &["node", "clean", "n1", "--runbook", "CUSTOM_WIPED"]);
    assert!(code == 1 && text.contains("lacks the trait CUSTOM_WIPED"), "{code} {text}");
    conductor.order(&["runbook", "delete", "CUSTOM_WIPED"]);
    let (code, text) = prints(&conductor, &["runbook", "show", "CUSTOM_WIPED"]);
    assert!(code == 1 && text.contains("does not exist"), "{code} {text}");
}
