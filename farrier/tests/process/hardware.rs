//! The hardware types that an operator may enable.

use crate::agent::Script;
use crate::site::Site;

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_every_hardware_type_are_enrolled() {
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
