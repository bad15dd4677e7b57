//! Nodes whose networks Neutron has.

use crate::agent::Script;
use crate::conductor::{Conductor, farrier};
use crate::site::Site;
use crate::stand_in::{PASSWORD, StandIn, USER};
use serde_json::{Value, json};
use std::path::Path;

/// Describes a cloud in a folder.
fn clouds_file(folder: &Path, url: &str) -> String {
    let file = folder.join("clouds.yaml");
    let auth = json!({"auth_url": url, "username": USER, "password": PASSWORD, "project_name": "service"});
    std::fs::write(&file, json!({"clouds": {"horses": {"auth": auth}}}).to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// What the network interface of a node says of it.
fn validity(conductor: &Conductor, node: &str) -> Value {
    let (code, said) = conductor.client(&["node", "validate", node, "--json"]).prints();
    assert_eq!(code, Some(0), "{said}");
    serde_json::from_str::<Value>(&said).unwrap()["network"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn process_nodes_on_networks_of_neutron_are_enrolled_and_validated() {
    let (cloud, site) = (StandIn::start().await, Site::new(Script::default()).await);
    let folder = tempfile::tempdir().unwrap();
    let file = clouds_file(folder.path(), &cloud.url);
    let own =
        ["--enabled-hardware-types", "fake-hardware", "--enabled-network-interfaces", "noop,flat,neutron"];
    let clouds = ["--os-client-config-file", &file, "--os-cloud", "horses"];
    let networks = ["--provisioning-network", "stable", "--cleaning-network", "net-2"];
    let conductor = site.conductor_with("c1", "127.0.0.1:0", &[&own[..], &clouds, &networks].concat());
    for (number, interface, info, expected) in [
        (1, "neutron", "a=b", None),
        (2, "flat", "a=b", None),
        (3, "neutron", "cleaning_network=desert", Some("\"desert\" is known to Neutron 0 times")),
    ] {
        let (name, mac) = (format!("n{number}"), format!("52:54:00:00:02:{number:02x}"));
        let interface = format!("network={interface}");
        let create = ["node", "create", &name, "--driver", "fake-hardware", "--mac", &mac];
        conductor.order(&[&create[..], &["--interface", &interface, "--driver-info", info]].concat());
        let validity = validity(&conductor, &name);
        assert_eq!(validity["result"], expected.is_none(), "{validity}");
        let reason = validity["reason"].as_str().unwrap_or_default();
        assert!(reason.contains(expected.unwrap_or_default()), "{reason}");
    }
    assert!(!conductor.log().contains(PASSWORD) && !conductor.log().contains("gAAAAA"));
    assert_eq!(cloud.inner().logins(), 1);
}

#[test]
fn process_what_neutron_needs_is_reported_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = clouds_file(folder.path(), "http://192.0.2.9:5000");
    let networks = ["--provisioning-network", "stable", "--cleaning-network", "meadow"];
    let neutron = ["--enabled-network-interfaces", "neutron"];
    for (arguments, expected) in [
        (
            [&neutron[..], &["--os-client-config-file", &file]].concat(),
            "--enabled-network-interfaces neutron needs --provisioning-network and --cleaning-network",
        ),
        (
            [&neutron[..], &networks, &["--os-client-config-file", "/nonexistent/clouds.yaml"]].concat(),
            "/nonexistent/clouds.yaml: No such file or directory",
        ),
        (
            [&neutron[..], &networks, &["--os-client-config-file", &file, "--os-cloud", "cows"]].concat(),
            "has no cloud \"cows\"; it has: horses",
        ),
        (vec!["--dhcp-provider", "neutron"], "--tftp-server"),
        (
            vec![
                "--dhcp-provider",
                "neutron",
                "--tftp-server",
                "192.0.2.1",
                "--os-client-config-file",
                &file,
            ],
            "--dhcp-provider neutron needs --listen with an address that machines reach, or --api-url",
        ),
    ] {
        let mut serve = farrier();
        serve.args([
            "serve",
            "--conductor-name",
            "c1",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
        ]);
        let output =
            serve.args(&arguments).env("FARRIER_STATE_DIR", folder.path().join("state")).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(expected), "{arguments:?}: {said}");
        assert!(!said.contains(PASSWORD), "{said}");
    }
}
