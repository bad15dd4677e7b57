//! Who may ask for what.

use crate::cloud::{Cloud, MEMBER, SERVICE, USER, created};
use crate::configuration::REGION;
use crate::stage::{Stage, by_password, neutron};
use farrier_conductor::interfaces::{NetworkInterface, NetworkKind};
use farrier_drivers::network::{NetworkSettings, NeutronNetwork, OperationNetwork};
use reqwest::Method;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

#[tokio::test]
async fn openstack_an_application_credential_does_as_its_user() {
    let cloud = Cloud::shared().await;
    let user = cloud.login(USER, "service").await;
    let body = json!({"application_credential": {"name": "farrier", "secret": "chaff"}});
    let path = format!("users/{}/application_credentials", user.id);
    let credential =
        created(&cloud.identity(&user, Method::POST, &path, &body).await, "application_credential");
    let entry = |id: &str, secret: &str| {
        json!({"auth_type": "v3applicationcredential", "region_name": REGION,
            "auth": {"application_credential_id": id, "application_credential_secret": secret}})
    };
    let network = neutron(cloud, &entry(&credential, "chaff")).unwrap().network("valley").await.unwrap();
    assert_eq!(network.physical_networks, BTreeSet::from(["rack2".to_owned()]));
    let error = neutron(cloud, &entry(&credential, "husk")).unwrap().network("valley").await.unwrap_err();
    let error = error.to_string();
    assert!(error.contains("Keystone refuses the credentials") && !error.contains("husk"), "{error}");
}

#[tokio::test]
async fn openstack_a_password_or_a_region_that_is_wrong_is_reported() {
    let cloud = Cloud::shared().await;
    let error = neutron(cloud, &by_password([USER[0], "mud"])).unwrap().network("valley").await.unwrap_err();
    let error = error.to_string();
    assert!(error.contains(USER[0]) && !error.contains("mud"), "{error}");
    let mut elsewhere = by_password(USER);
    elsewhere["region_name"] = "r9".into();
    let error = neutron(cloud, &elsewhere).unwrap().network("valley").await.unwrap_err().to_string();
    assert!(error.contains("no endpoint of type network") && error.contains("r9"), "{error}");
}

#[tokio::test]
async fn openstack_without_the_role_of_a_service_no_port_is_bound_and_without_that_of_an_admin_no_rack_seen()
{
    let mut stage = Stage::new().await;
    let kind = NetworkKind::Provisioning;
    let network = stage.neutron.network("provisioning").await.unwrap();
    for (account, expected) in [(MEMBER, Err("disallowed by policy")), (SERVICE, Ok(()))] {
        let neutron = neutron(stage.cloud, &by_password(account)).unwrap();
        let own = OperationNetwork { network: Some("provisioning".into()), security_groups: Vec::new() };
        let settings = NetworkSettings { networks: [(kind, own)].into(), ..NetworkSettings::default() };
        let interface = NeutronNetwork::separate(neutron.clone(), Arc::new(settings));
        match (interface.add_network(&mut stage.node, kind).await, expected) {
            (Ok(()), Ok(())) => {
                let seen = neutron.network("provisioning").await.unwrap();
                assert!(seen.physical_networks.is_empty(), "{seen:?}");
                interface.remove_network(&mut stage.node, kind).await.unwrap();
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (outcome, _) => panic!("{account:?}: {outcome:?}"),
        }
    }
    assert_eq!(network.physical_networks, BTreeSet::from(["rack1".to_owned()]));
}

#[tokio::test]
async fn openstack_a_neutron_without_keystone_is_asked_without_a_token() {
    let mut stage = Stage::new().await;
    let entry = json!({"auth_type": "none", "network_endpoint_override": stage.cloud.open_neutron});
    let open = neutron(stage.cloud, &entry).unwrap();
    let own = OperationNetwork { network: Some("provisioning".into()), security_groups: Vec::new() };
    let networks = [(NetworkKind::Provisioning, own)].into();
    let settings = Arc::new(NetworkSettings { networks, ..NetworkSettings::default() });
    let interface = NeutronNetwork::separate(open, settings);
    interface.add_network(&mut stage.node, NetworkKind::Provisioning).await.unwrap();
    assert_eq!(stage.commands(0), [stage.plug(0, 101)]);
    interface.remove_network(&mut stage.node, NetworkKind::Provisioning).await.unwrap();
    assert_eq!(stage.commands(0).last(), Some(&stage.unplug(0)));
}
