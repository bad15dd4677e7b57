//! What machines are told by the DHCP of Neutron.

use crate::stage::Stage;
use farrier_conductor::interfaces::{DhcpOption, DhcpProvider, NetworkInterface, NetworkKind};
use farrier_drivers::dhcp::neutron::NeutronDhcp;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn openstack_a_port_has_the_options_of_a_boot_until_they_are_cleaned() {
    let mut stage = Stage::new().await;
    let dhcp = NeutronDhcp::new(stage.neutron.clone(), Duration::ZERO);
    stage.network.add_network(&mut stage.node, NetworkKind::Provisioning).await.unwrap();
    let id = stage.note(0, "provisioning_vif_port_id").unwrap();
    let option = |ip_version, name: &str, value: &str| DhcpOption {
        name: name.to_owned(),
        value: value.to_owned(),
        ip_version,
    };
    let options = [
        option(4, "66", "192.0.2.5"),
        option(4, "tag:ipxe,67", "http://192.0.2.5:8080/boot.ipxe"),
        option(4, "tag:!ipxe,67", "snponly.efi"),
        option(6, "59", "tftp://[2001:db8::1]/snponly.efi"),
    ];
    dhcp.update_dhcp_opts(&stage.node, &options).await.unwrap();
    let mut options = stage.port(&id).await.1["extra_dhcp_opts"].take();
    let options = options.as_array_mut().unwrap();
    options.sort_by_key(|option| option["opt_name"].to_string());
    let expected = [
        ("66", "192.0.2.5"),
        ("tag:!ipxe,67", "snponly.efi"),
        ("tag:ipxe,67", "http://192.0.2.5:8080/boot.ipxe"),
    ];
    let expected =
        expected.map(|(name, value)| json!({"opt_name": name, "opt_value": value, "ip_version": 4}));
    assert_eq!(*options, expected);
    let addresses = dhcp.get_ip_addresses(&stage.node).await.unwrap();
    assert_eq!(stage.port(&id).await.1["fixed_ips"][0]["ip_address"], addresses[0].to_string());
    for _ in 0..2 {
        dhcp.clean_dhcp_opts(&stage.node).await.unwrap();
        assert_eq!(stage.port(&id).await.1["extra_dhcp_opts"], json!([]));
    }
}
