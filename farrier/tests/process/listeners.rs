//! What strangers, guests of the host and pages in its browser find out and order at the listener of operators.

use crate::agent::Script;
use crate::conductor::{Conductor, farrier};
use crate::operators::{NOAUTH, PASSWORD, client, own_certificate, send, until};
use crate::site::{PATIENCE, Site};
use reqwest::{Client, StatusCode};
use std::fs;

/// All links of an answer.
fn links(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| {
                match value.as_str().filter(|_| ["href", "next"].contains(&key.as_str())) {
                    Some(link) => vec![link.to_owned()],
                    None => links(value),
                }
            })
            .collect(),
        serde_json::Value::Array(values) => values.iter().flat_map(links).collect(),
        _ => Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn process_n27_n29_links_lead_to_the_listener_that_was_asked_and_are_answered() {
    let site = Site::new(Script::default()).await;
    let public = "https://conductor.example:443/baremetal";
    let api = ["--api-url", "http://192.0.2.5:6385"];
    let plain = site.conductor_with("c1", "127.0.0.1:0", &api);
    site.enrol(&plain);
    let behind = site.conductor_with("c2", "127.0.0.1:0", &[&api[..], &["--admin-url", public]].concat());
    let token = fs::read_to_string(plain.state().join("token")).unwrap();
    let http = client(&own_certificate(&plain));
    let ask = async |url: String, host: Option<&str>| {
        let mut request = http.get(url).bearer_auth(token.trim());
        request = request.header("X-OpenStack-Ironic-API-Version", "1.110");
        if let Some(host) = host {
            request = request.header("Host", host);
        }
        send(request).await
    };
    let paths = ["", "/v1", "/v1/nodes?limit=1", "/v1/nodes/n1", "/v1/volume", "/v1/nodes/n1/volume"];
    for path in paths {
        for (conductor, base) in [(&plain, plain.node_api.as_str()), (&behind, public)] {
            let reply = ask(format!("{}{path}", conductor.node_api), None).await;
            assert_eq!(reply.status(), 200, "{path}");
            let found = links(&reply.json().await.unwrap());
            assert!(
                !found.is_empty() && found.iter().all(|link| link.starts_with(base)),
                "{path}: {found:?}"
            );
        }
        // The name by which a client calls is not believed where another is known.
        let reply = ask(format!("{}{path}", behind.node_api), Some("conductor.example")).await;
        let found = links(&reply.json().await.unwrap());
        assert!(found.iter().all(|link| link.starts_with(public)), "{path}: {found:?}");
    }
    let volume = ask(format!("{}/v1/nodes/n1/volume", plain.node_api), None).await;
    for link in links(&volume.json().await.unwrap()).into_iter().filter(|link| link.contains("/v1/")) {
        assert_eq!(ask(link.clone(), None).await.status(), 200, "{link}");
    }
    assert_eq!(ask(format!("{}/v1/nodes/none/volume", plain.node_api), None).await.status(), 404);
    // Links for ramdisks are made of `--api-url`.
    let root = send(http.get(&plain.ramdisk_api).header("Host", "evil.example")).await;
    let found = links(&root.json().await.unwrap());
    assert!(found.iter().all(|link| link.starts_with("http://192.0.2.5:6385/")), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn process_n16_a_page_in_a_browser_of_this_host_orders_nothing() {
    let site = Site::new(Script::default()).await;
    let options = [&NOAUTH[..], &["--enabled-hardware-types", "fake-hardware"]].concat();
    let conductor = site.conductor_with("c1", "127.0.0.1:0", &options);
    let http = Client::builder().timeout(PATIENCE).no_proxy().build().unwrap();
    let nodes = format!("{}/v1/nodes", conductor.node_api);
    let body = r#"{"name": "n9", "driver": "fake-hardware"}"#;
    let port = conductor.node_api.rsplit(':').next().unwrap();
    let own = format!("http://127.0.0.1:{port}");
    for (headers, status) in [
        (&[("Host", "evil.example"), ("Content-Type", "application/json")][..], 403),
        (&[("Origin", "http://evil.example"), ("Content-Type", "application/json")], 403),
        (&[("Origin", "null"), ("Content-Type", "application/json")], 403),
        (&[("Content-Type", "text/plain")], 415),
        (&[("Content-Type", "application/x-www-form-urlencoded")], 415),
        (&[], 415),
        (&[("Origin", &own), ("Content-Type", "application/json")], 201),
    ] {
        let mut request = http.post(&nodes).header("X-OpenStack-Ironic-API-Version", "1.110").body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let reply = send(request).await;
        assert_eq!(reply.status(), status, "{headers:?}");
        let code = reply.headers().get("Farrier-Error-Code").map(|code| code.to_str().unwrap().to_owned());
        let expected = [(403, "FAR-0013"), (415, "FAR-0001")].into_iter().find(|(one, _)| *one == status);
        assert_eq!(code.as_deref(), expected.map(|(_, code)| code), "{headers:?}");
        if status != 201 {
            assert!(reply.text().await.unwrap().contains("error_message"), "{headers:?}");
        }
    }
    let listed: serde_json::Value = send(http.get(&nodes)).await.json().await.unwrap();
    assert_eq!(listed["nodes"].as_array().unwrap().len(), 1, "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn process_n17_that_tokens_travel_in_clear_is_reported_in_one_line() {
    let site = Site::new(Script::default()).await;
    let warnings = |conductor: &Conductor| conductor.log().matches("agent tokens are in clear text").count();
    let open = site.conductor("c1", "0.0.0.0:0");
    open.says("agent tokens are in clear text").await;
    let (cert, key) = (own_certificate(&open), open.state().join("tls/key.pem"));
    let files = ["--ramdisk-tls-cert", cert.to_str().unwrap(), "--ramdisk-tls-key", key.to_str().unwrap()];
    let closed = site.conductor_with("c2", "0.0.0.0:0", &files);
    let local = site.conductor("c3", "127.0.0.1:0");
    assert_eq!([warnings(&open), warnings(&closed), warnings(&local)], [1, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn process_n21_a_throttle_shows_no_names() {
    let site = Site::new(Script::default()).await;
    let conductor = site.conductor("c1", "127.0.0.1:0");
    conductor.auth(&["add", "me", "--role", "admin", "--bcrypt-cost", "4"], PASSWORD);
    let http = client(&own_certificate(&conductor));
    let nodes = format!("{}/v1/nodes", conductor.node_api);
    until(StatusCode::OK, http.get(&nodes).basic_auth("me", Some(PASSWORD))).await;
    let mut answers = Vec::new();
    for name in ["me", "admin"] {
        for number in 0..12 {
            let guess = http.get(&nodes).basic_auth(name, Some(format!("wrong{number}")));
            answers.push((name, send(guess).await.status().as_u16()));
        }
    }
    let of = |name: &str| {
        answers.iter().filter(|(of, _)| *of == name).map(|(_, status)| *status).collect::<Vec<_>>()
    };
    assert_eq!(of("me"), of("admin"));
    assert_eq!(of("me")[..11], [[401; 10].as_slice(), &[429]].concat());
}

#[test]
fn process_n03_no_hardware_type_of_this_host_is_enabled_by_default() {
    let output = farrier().args(["serve", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let text = help.split("--enabled-hardware-types").nth(1).unwrap().split("\n  -").next().unwrap();
    assert!(text.contains("[default: redfish,ipmi]") || text.contains("[default: redfish ipmi]"), "{text}");
}
