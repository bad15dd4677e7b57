//! Addresses of BMCs: a machine none of whose network cards is known is found by them (section 8.5).

use crate::model::Node;
use serde_json::json;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;
use tokio::net::lookup_host;
use tokio::time::timeout;

/// The note with the addresses.
const NOTE: &str = "lookup_bmc_addresses";

/// How the keys of `driver_info` end that say where a BMC is: `redfish_address`, `ipmi_address` and so on.
const ADDRESS: &str = "_address";

/// Longest time for one name.
const LIMIT: Duration = Duration::from_secs(10);

/// Notes the addresses of a node's BMC for the inspection that begins. A name that does not resolve makes a machine
/// harder to find, and no more.
pub async fn note(node: &mut Node) {
    forget(node);
    let addresses = of(node).await;
    if !addresses.is_empty() {
        node.driver_internal_info.others.insert(NOTE.to_owned(), json!(addresses));
    }
}

/// The addresses of a node's BMC, as its `driver_info` says where that is. A name that does not resolve has none.
pub async fn of(node: &Node) -> BTreeSet<IpAddr> {
    let texts = node.driver_info.iter().filter(|(key, _)| key.ends_with(ADDRESS));
    let hosts: Vec<_> = texts.filter_map(|(_, value)| Some(host(value.as_str()?).to_owned())).collect();
    let mut addresses = BTreeSet::new();
    for host in hosts {
        match timeout(LIMIT, lookup_host((host.as_str(), 0))).await {
            Ok(Ok(found)) => addresses.extend(found.map(|address| address.ip())),
            Ok(Err(error)) => tracing::warn!(node = %node.uuid, "the BMC {host} cannot be resolved: {error}"),
            Err(_) => tracing::warn!(node = %node.uuid, "the BMC {host} was not resolved in time"),
        }
    }
    addresses
}

/// Forgets the addresses: the inspection has ended.
pub fn forget(node: &mut Node) {
    node.driver_internal_info.others.remove(NOTE);
}

/// The addresses that are noted of the BMC of a node.
pub fn noted(node: &Node) -> impl Iterator<Item = IpAddr> {
    let noted = node.driver_internal_info.others.get(NOTE).and_then(|noted| noted.as_array());
    noted.into_iter().flatten().filter_map(|address| address.as_str()?.parse().ok())
}

/// The host of an address, which may be a URL.
fn host(text: &str) -> &str {
    let authority = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((bracketed, _)) => bracketed,
        // More than one colon is an address of IPv6 without a port.
        None if host.matches(':').count() == 1 => host.split(':').next().unwrap_or_default(),
        None => host,
    }
}

#[cfg(test)]
mod tests {
    use super::super::hooks::tests::node;
    use super::*;

    #[test]
    fn the_host_of_every_spelling() {
        for (text, expected) in [
            ("198.51.100.10", "198.51.100.10"),
            ("bmc.example:623", "bmc.example"),
            ("https://bmc.example:8443/redfish/v1", "bmc.example"),
            ("https://admin@bmc.example", "bmc.example"),
            ("https://[2001:db8::1]:443", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("", ""),
        ] {
            assert_eq!(host(text), expected, "{text}");
        }
    }

    #[tokio::test]
    async fn addresses_are_noted_until_they_are_forgotten() {
        let mut node = node(&[]);
        let info =
            json!({"redfish_address": "https://127.0.0.1:8000", "ipmi_address": "", "ipmi_port": "623"});
        node.driver_info = serde_json::from_value(info).unwrap();
        note(&mut node).await;
        assert_eq!(node.driver_internal_info.others[NOTE], json!(["127.0.0.1"]));
        assert_eq!(noted(&node).collect::<Vec<_>>(), ["127.0.0.1".parse::<IpAddr>().unwrap()]);
        forget(&mut node);
        assert_eq!(noted(&node).count(), 0);
    }
}
