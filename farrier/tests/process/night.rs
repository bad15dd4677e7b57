//! What an operator asks at night, and how the commands end.

use crate::agent::Script;
use crate::agent::signing::Proof;
use crate::conductor::{Conductor, farrier, has_code};
use crate::site::Site;
use farrier_conductor::model::ProvisionState;
use reqwest::{Certificate, Client, Method};
use serde_json::{Value, json};
use std::fs;

fn prints(conductor: &Conductor, arguments: &[&str]) -> (i32, String) {
    let (code, text) = conductor.client(arguments).prints();
    (code.unwrap(), text)
}

/// Sends something as the conductor's own user.
async fn send(conductor: &Conductor, method: Method, path: &str, body: Option<Value>) -> Value {
    let read = |file: &str| fs::read_to_string(conductor.state().join(file)).unwrap();
    let certificate = Certificate::from_pem(read("tls/certificate.pem").as_bytes()).unwrap();
    let http = Client::builder().no_proxy().tls_certs_only([certificate]).build().unwrap();
    let request = http
        .request(method, format!("{}{path}", conductor.node_api))
        .bearer_auth(read("token").trim())
        .header("X-OpenStack-Ironic-API-Version", "1.110");
    let request = body.iter().fold(request, |request, body| request.json(body));
    let reply = request.send().await.unwrap();
    assert!(reply.status().is_success(), "{path}: {}", reply.text().await.unwrap());
    reply.json().await.unwrap()
}

fn of_class(class: &str) -> Vec<String> {
    let checksum = format!("sha256:{}", "a".repeat(64));
    let line =
        format!("deploy --resource-class {class} --image http://192.0.2.5/debian.raw --checksum {checksum}");
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn process_a_usage_error_ends_with_its_code() {
    for line in ["node list --nonsense", "node", "nothing", "deploy n1", "watch --interval 0"] {
        let output = farrier().args(line.split(' ')).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        let is_help = line == "node";
        assert!(is_help || has_code(&said), "{line}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn process_a_node_is_taken_by_its_class_explained_remembered_and_proven_erased() {
    let site = Site::new(Script { proof: Proof::of(&["S1"]), ..Script::default() }).await;
    let conductor = site.conductor("c1", "127.0.0.1:0");
    site.enrol(&conductor);
    let class = json!([{"op": "add", "path": "/resource_class", "value": "gold"}]);
    send(&conductor, Method::PATCH, "/v1/nodes/n1", Some(class)).await;

    let gold = of_class("gold");
    let gold: Vec<_> = gold.iter().map(String::as_str).collect();
    let (code, text) = prints(&conductor, &gold);
    assert!(code == 0 && text.contains("node n1 ("), "{code} {text}");
    site.ends(ProvisionState::Active).await;
    // There is no other one, and nothing is left of having asked.
    let (code, text) = prints(&conductor, &gold);
    assert!(code == 1 && text.contains("no available node has the resource class"), "{code} {text}");
    let allocations = send(&conductor, Method::GET, "/v1/allocations", None).await;
    assert_eq!(allocations["allocations"].as_array().unwrap().len(), 1, "{allocations}");

    let (code, text) = prints(&conductor, &["explain", "n1"]);
    assert!(code == 0 && text.contains("It waits for nothing: its instance runs."), "{code} {text}");
    let (code, text) = prints(&conductor, &["certificates", "n1", "--verify"]);
    assert!(code == 1 && text.contains("no certificates of erasure"), "{code} {text}");

    let (code, text) = prints(&conductor, &["node", "undeploy", "n1", "--wait", "0"]);
    assert!(code == 3 && text.contains("farrier explain n1"), "{code} {text}");
    let record = site.ends(ProvisionState::Available).await;
    assert_eq!(record.node.allocation_uuid, None);
    let (code, text) = prints(&conductor, &["certificates", "n1", "--verify"]);
    assert!(code == 0 && text.contains("Erasure: proven: S1 erased"), "{code} {text}");
    assert_eq!(text.matches("verified").count(), 4, "{text}");
    for command in [&["node", "list"][..], &["node", "show", "n1"]] {
        let (_, text) = prints(&conductor, command);
        assert!(text.contains("proven"), "{text}");
    }
    let (code, text) = prints(&conductor, &["watch", "--once"]);
    assert!(code == 0 && text.contains("n1") && text.contains("available"), "{code} {text}");

    let (_, text) = prints(&conductor, &["history", "n1", "--json"]);
    let history: Vec<Value> = serde_json::from_str(&text).unwrap();
    let of =
        |part: &str| history.iter().find(|entry| entry["event"].as_str().unwrap().contains(part)).unwrap();
    assert!(of(r#"from "available" to "deploying""#)["user"].is_string(), "{text}");
    assert!(of("erasure proven: S1 erased")["user"].is_null(), "{text}");
    let (_, text) = prints(&conductor, &["history", "n1"]);
    assert!(text.starts_with("uuid ") && text.contains(" INFO "), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn process_an_order_that_is_refused_leaves_the_node_as_it_was() {
    let site = Site::new(Script::default()).await;
    let conductor = site.conductor("c1", "127.0.0.1:0");
    site.enrol(&conductor);
    conductor.order(&["node", "maintenance", "n1", "on", "--reason", "fan"]);
    let (is_success, said) = site.deploy(&conductor).ends();
    assert!(!is_success && said.contains("fan"), "{said}");
    assert!(site.record().await.node.instance_info.is_empty());
    let (code, text) = prints(&conductor, &["explain", "n1"]);
    assert!(code == 0 && text.contains("it is in maintenance (fan)"), "{text}");
}

/// An agent that proves nothing leaves its reason.
#[tokio::test(flavor = "multi_thread")]
async fn process_disks_that_nobody_proves_erased_fail_their_verification() {
    let site = Site::new(Script::default()).await;
    let conductor = site.conductor("c1", "127.0.0.1:0");
    site.enrol(&conductor);
    conductor.order(&["node", "manage", "n1"]);
    conductor.order(&["node", "provide", "n1"]);
    let (code, text) = prints(&conductor, &["certificates", "n1", "--verify"]);
    assert!(code == 1 && text.contains("the agent gave no certificates"), "{code} {text}");
}
