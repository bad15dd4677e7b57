//! The calls of Metal3.

use crate::stand_ins::agent::Script;
use crate::stand_ins::operator::{ask, ask_in};
use crate::stand_ins::stage::{PATIENCE, Stage};
use reqwest::Method;
use serde_json::{Value, json};

/// What the baremetal operator of Metal3 asks for, from the registration of a host to its end.
#[tokio::test]
async fn the_calls_of_metal3_lead_a_host_through_its_life() {
    let stage = Stage::new(Script::default()).await;
    let version = "1.110";
    let send = async |method: Method, path: &str, body: Value, status: u16| -> Value {
        let reply = ask_in(version, &stage, method.clone(), path, &body).await;
        let found = reply.status().as_u16();
        let text = reply.text().await.unwrap();
        assert_eq!(found, status, "{method} {path} {body}: {text}");
        serde_json::from_str(&text).unwrap_or_default()
    };
    let none = || Value::Null;
    let reached = async |path: &str, state: &str| {
        let end = std::time::Instant::now() + PATIENCE;
        loop {
            let node = send(Method::GET, path, Value::Null, 200).await;
            if node["provision_state"] == state && node["reservation"].is_null() {
                assert_eq!(node["target_provision_state"], Value::Null, "{node}");
                return node;
            }
            assert!(std::time::Instant::now() < end, "waited for {state}, but {node}");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    // The conductor is ready.
    assert!(send(Method::GET, "/v1", none(), 200).await["version"]["version"].is_string());
    assert!(!send(Method::GET, "/v1/drivers", none(), 200).await["drivers"].as_array().unwrap().is_empty());
    // Registration.
    send(Method::GET, "/v1/nodes/metal3~host-0", none(), 404).await;
    let ports =
        send(Method::GET, "/v1/ports?address=52:54:00:00:00:02&fields=node_uuid,uuid,address", none(), 200);
    assert_eq!(ports.await["ports"], json!([]));
    let new = json!({
        "driver": "fake", "name": "metal3~host-0", "driver_info": {"fake_address": "192.0.2.1", "fake_password": "p"},
        "properties": {"capabilities": "boot_mode:uefi", "cpu_arch": "x86_64"}, "boot_interface": "fake",
        "raid_interface": "no-raid", "power_interface": "fake", "vendor_interface": "no-vendor",
        "disable_power_off": false,
    });
    let node = send(Method::POST, "/v1/nodes", new, 201).await;
    assert_eq!((&node["provision_state"], &node["automated_clean"]), (&json!("enroll"), &json!(null)));
    let uuid = node["uuid"].as_str().unwrap().to_owned();
    let path = format!("/v1/nodes/{uuid}");
    let (provision, power) = (format!("{path}/states/provision"), format!("{path}/states/power"));
    send(
        Method::POST,
        "/v1/ports",
        json!({"node_uuid": uuid, "address": "52:54:00:00:00:02", "pxe_enabled": true}),
        201,
    )
    .await;
    let add = |path: &str, value: Value| json!({"op": "add", "path": path, "value": value});
    send(
        Method::PATCH,
        &path,
        json!([
            add("/automated_clean", json!(false)),
            add("/driver_info", json!({"fake_address": "192.0.2.1", "fake_password": "q"}))
        ]),
        200,
    )
    .await;
    send(Method::PUT, &provision, json!({"target": "manage"}), 202).await;
    reached(&path, "manageable").await;
    let busy =
        send(Method::GET, "/v1/nodes?fields=uuid,name,provision_state,boot_interface", none(), 200).await;
    assert_eq!(busy["nodes"].as_array().unwrap().len(), 2);
    send(Method::GET, &format!("{path}/firmware"), none(), 200).await;
    send(Method::GET, &format!("{path}/bios"), none(), 200).await;
    // Preparation.
    send(Method::PUT, &provision, json!({"target": "provide"}), 202).await;
    reached(&path, "available").await;
    // Provisioning.
    let instance = "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11";
    let checksum = "a".repeat(64);
    let patch = json!([
        add("/instance_uuid", json!(instance)),
        add("/instance_info/image_source", json!("http://192.0.2.5/debian.raw")),
        add("/instance_info/image_os_hash_algo", json!("sha256")),
        add("/instance_info/image_os_hash_value", json!(checksum)),
        add("/instance_info/image_disk_format", json!("raw")),
        add("/instance_info/capabilities", json!({"boot_mode": "uefi"})),
        add("/properties/root_device", json!({"size": ">= 10"})),
        add("/properties/capabilities", json!("boot_mode:uefi")),
    ]);
    send(Method::PATCH, &path, patch, 200).await;
    let validity = send(Method::GET, &format!("{path}/validate"), none(), 200).await;
    assert_eq!(
        (&validity["boot"]["result"], &validity["deploy"]["result"]),
        (&json!(true), &json!(true)),
        "{validity}"
    );
    let drive =
        json!({"meta_data": {"uuid": instance}, "network_data": {"links": []}, "user_data": "#!/bin/sh\n"});
    send(Method::PUT, &provision, json!({"target": "active", "configdrive": drive}), 202).await;
    let active = reached(&path, "active").await;
    assert_eq!((&active["instance_uuid"], &active["power_state"]), (&json!(instance), &json!("power on")));
    // Power: what the machine cannot do is refused with 400, and done the hard way then.
    let soft = ask(&stage, Method::PUT, &power, &json!({"target": "soft power off", "timeout": 5})).await;
    assert!([202, 400].contains(&soft.status().as_u16()), "{}", soft.status());
    reached(&path, "active").await;
    send(Method::PUT, &power, json!({"target": "power off"}), 202).await;
    assert_eq!(reached(&path, "active").await["power_state"], "power off");
    // Deprovisioning, and the end.
    send(Method::PUT, &provision, json!({"target": "deleted"}), 202).await;
    let free = reached(&path, "available").await;
    assert_eq!((&free["instance_uuid"], &free["instance_info"]), (&json!(null), &json!({})));
    send(Method::PUT, &format!("{path}/maintenance"), json!({"reason": "host is going away"}), 202).await;
    send(Method::DELETE, &path, none(), 204).await;
    send(Method::GET, &path, none(), 404).await;
}
