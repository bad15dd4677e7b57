//! The hardware types that an operator may enable.

use crate::agent::Script;
use crate::conductor::Conductor;
use crate::operators::NOAUTH;
use crate::site::Site;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What every secret of a node is.
const MARK: &str = "0a75f3a0a75f3a";

#[tokio::test(flavor = "multi_thread")]
async fn process_nodes_of_every_hardware_type_are_enrolled() {
    let site = Site::new(Script::default()).await;
    let redfish = ["redfish_address=https://192.0.2.9", "redfish_system_id=/redfish/v1/Systems/1"];
    let ipmi = ["ipmi_address=192.0.2.9"];
    let types: [(&str, &[&str]); 6] = [
        ("qemu", &[]),
        ("redfish", &redfish),
        ("ipmi", &ipmi),
        ("pxe_ipmitool", &ipmi),
        ("agent_ipmitool", &ipmi),
        ("fake-hardware", &[]),
    ];
    let conductor = site.conductor_with(
        "c1",
        "127.0.0.1:0",
        &["--enabled-hardware-types", "qemu,redfish,ipmi,fake-hardware"],
    );
    for (number, (driver, info)) in types.into_iter().enumerate() {
        let mac = format!("52:54:00:00:01:{number:02x}");
        let info: Vec<_> = info.iter().flat_map(|pair| ["--driver-info", pair]).collect();
        conductor
            .order(&[&["node", "create", driver, "--driver", driver, "--mac", &mac], &info[..]].concat());
    }
}

/// Puts a program into a folder that writes down how it was called, and fails.
fn recorder(folder: &Path, name: &str, calls: &Path) {
    let program = folder.join(name);
    let script =
        format!("#!/bin/sh\n{{ tr '\\0' ' ' </proc/$$/cmdline; echo; }} >>{}\nexit 1\n", calls.display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Every user of the conductor's host sees the arguments of its processes.
#[tokio::test(flavor = "multi_thread")]
async fn process_n24_no_process_argument_shows_a_secret_of_a_node() {
    let folder = tempfile::tempdir().unwrap();
    let (programs, calls) = (folder.path().join("bin"), folder.path().join("calls"));
    fs::create_dir(&programs).unwrap();
    recorder(&programs, "ipmitool", &calls);
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let own = [&NOAUTH[..], &["--enabled-hardware-types", "ipmi", "--listen", "127.0.0.1:0"]].concat();
    let conductor = Conductor::begin_with(folder.path(), "c1", &own, &[("PATH", &path)]).listening();

    // Every key of the driver whose value is a secret, and kernel parameters.
    rustls::crypto::ring::default_provider().install_default().ok();
    let url = format!("{}/v1/drivers/ipmi/properties", conductor.node_api);
    let keys: BTreeMap<String, String> = reqwest::get(url).await.unwrap().json().await.unwrap();
    let parameters = format!("kernel_append_params=rootpwd={MARK} ipa-agent-token={MARK}");
    let mut create: Vec<_> =
        ["node", "create", "n1", "--driver", "ipmi", "--mac", "52:54:00:00:00:01"].into();
    create.extend(["--driver-info", "ipmi_address=192.0.2.9", "--driver-info", &parameters]);
    let digits: String = MARK.bytes().map(|byte| format!("{byte:02x}")).collect();
    let secrets = keys.keys().filter(|key| ["_password", "_key"].iter().any(|kind| key.ends_with(kind)));
    let secrets = secrets.map(|key| {
        let file = folder.path().join(key);
        fs::write(&file, if key.contains("_hex_") { &digits } else { MARK }).unwrap();
        format!("{key}={}", file.display())
    });
    let secrets: Vec<_> = secrets.collect();
    assert!(secrets.len() >= 2, "{keys:?}");
    create.extend(secrets.iter().flat_map(|given| ["--driver-secret", given]));
    conductor.order(&create);

    let orders: [&[&str]; 3] =
        [&["node", "power", "n1", "off"], &["node", "manage", "n1"], &["node", "sensors", "n1"]];
    for order in orders {
        conductor.client(&[&order[..2], &["--wait", "5"], &order[2..]].concat()).prints();
    }
    let called = fs::read_to_string(&calls).unwrap_or_default();
    assert!(called.contains("power status") && called.contains("192.0.2.9"), "{called} {}", conductor.log());
    assert!(!called.contains(MARK) && !called.contains(&digits), "{called}");
}
