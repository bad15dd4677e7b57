//! What machines are told by the DHCP of Neutron.

use crate::stage::Stage;
use crate::stand_in::Fault;
use farrier_conductor::interfaces::{DhcpOption, DhcpProvider, NetworkInterface, NetworkKind};
use farrier_drivers::dhcp::neutron::NeutronDhcp;
use serde_json::json;
use std::time::Duration;

fn options() -> Vec<DhcpOption> {
    let option = |ip_version, name: &str, value: &str| DhcpOption {
        name: name.to_owned(),
        value: value.to_owned(),
        ip_version,
    };
    vec![option(4, "tag:ipxe,67", "http://192.0.2.5/boot.ipxe"), option(6, "59", "tftp://[2001:db8::1]/x")]
}

#[tokio::test]
async fn a_port_has_the_options_of_its_addresses_until_they_are_cleaned() {
    let mut stage = Stage::new().await;
    let dhcp = NeutronDhcp::new(stage.neutron.clone(), Duration::ZERO);
    let error = dhcp.update_dhcp_opts(&stage.node, &options()).await.unwrap_err().to_string();
    assert!(error.contains("has no Neutron port"), "{error}");

    stage.network.add_network(&mut stage.node, NetworkKind::Provisioning).await.unwrap();
    let id = stage.note(0, "provisioning_vif_port_id").unwrap();
    dhcp.update_dhcp_opts(&stage.node, &options()).await.unwrap();
    let sent =
        json!([{"opt_name": "tag:ipxe,67", "opt_value": "http://192.0.2.5/boot.ipxe", "ip_version": 4}]);
    assert_eq!(stage.port(&id)["extra_dhcp_opts"], sent);
    let addresses = dhcp.get_ip_addresses(&stage.node).await.unwrap();
    assert_eq!(stage.port(&id)["fixed_ips"][0]["ip_address"], addresses[0].to_string());

    dhcp.clean_dhcp_opts(&stage.node).await.unwrap();
    assert_eq!(stage.port(&id)["extra_dhcp_opts"], json!([]));
    dhcp.clean_dhcp_opts(&stage.node).await.unwrap();
}

#[tokio::test]
async fn one_port_that_fails_is_enough_of_a_failure_only_where_all_do() {
    let mut stage = Stage::new().await;
    let dhcp = NeutronDhcp::new(stage.neutron.clone(), Duration::ZERO);
    stage.node.ports[1].pxe_enabled = true;
    stage.network.add_network(&mut stage.node, NetworkKind::Provisioning).await.unwrap();
    stage.cloud.inner().faults.push(("GET /v2.0/ports/", Fault::Status(403)));
    dhcp.update_dhcp_opts(&stage.node, &options()).await.unwrap();
    stage.cloud.inner().faults = vec![("PUT", Fault::Status(403)), ("PUT", Fault::Status(409))];
    let error = dhcp.update_dhcp_opts(&stage.node, &options()).await.unwrap_err().to_string();
    assert!(error.contains("403 Forbidden"), "the first one is told: {error}");
}
