//! Which ways of a lease can be used: a gateway that cannot be one is none, and costs no other way.

use farrier_linux::netlink::Route;
use ipnet::{IpNet, Ipv4Net};
use std::net::{IpAddr, Ipv4Addr};

/// Bits of a network with an address for itself and one for all its hosts (RFC 3021).
const WITH_BROADCAST: u8 = 30;
/// Bits of a lease that has no network: whatever there is lies behind the link itself.
const WITHOUT_NETWORK: u8 = 32;

/// The usable ways of a lease with this address. Classless ones stand in for routers (RFC 3442), unless their
/// default route is of no use.
pub fn usable(own: Ipv4Net, classless: &[Route], routers: &[Ipv4Addr]) -> Vec<Route> {
    let near: Vec<IpNet> =
        classless.iter().filter(|route| route.gateway.is_none()).map(|route| route.destination).collect();
    let is_usable = |gateway: Ipv4Addr| match fault(gateway, own, &near) {
        Some(reason) => {
            tracing::warn!("the DHCP server sends the router {gateway}, which is ignored: {reason}");
            false
        }
        None => true,
    };
    let mut routes = classless.to_vec();
    routes.retain(|route| match route.gateway {
        Some(IpAddr::V4(gateway)) => is_usable(gateway),
        Some(IpAddr::V6(_)) => false,
        None => true,
    });
    let has_default = |routes: &[Route]| routes.iter().any(|route| route.destination.prefix_len() == 0);
    if !has_default(&routes) && (classless.is_empty() || has_default(classless)) {
        let router = routers.iter().copied().find(|router| is_usable(*router));
        routes.extend(router.map(|router| Route::default_through(router.into())));
    }
    routes
}

/// Why packets cannot be given to a gateway.
fn fault(gateway: Ipv4Addr, own: Ipv4Net, near: &[IpNet]) -> Option<&'static str> {
    let is_near =
        || own.contains(&gateway) || near.iter().any(|network| network.contains(&IpAddr::V4(gateway)));
    let is_large = own.prefix_len() <= WITH_BROADCAST;
    match gateway {
        _ if gateway.octets()[0] == 0 || gateway.is_loopback() => {
            Some("it is the address of no other machine")
        }
        _ if gateway.is_multicast() || gateway.is_broadcast() => Some("it is the address of many machines"),
        _ if gateway == own.addr() => Some("it is the machine's own address"),
        _ if is_large && gateway == own.broadcast() => Some("it is the network's broadcast address"),
        _ if is_large && gateway == own.network() => Some("it is the address of the network itself"),
        _ if own.prefix_len() < WITHOUT_NETWORK && !is_near() => Some("it is not on the link"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(destination: &str, gateway: &str) -> Route {
        let gateway = (!gateway.is_empty()).then(|| gateway.parse().unwrap());
        Route { destination: destination.parse().unwrap(), gateway }
    }

    fn found(own: &str, classless: &[(&str, &str)], routers: &[&str]) -> Vec<Route> {
        let classless: Vec<_> = classless.iter().map(|(to, through)| route(to, through)).collect();
        let routers: Vec<_> = routers.iter().map(|router| router.parse().unwrap()).collect();
        usable(own.parse().unwrap(), &classless, &routers)
    }

    #[test]
    fn a04_a_router_that_cannot_be_one_is_none() {
        let (own, good) = ("192.0.2.50/24", "192.0.2.1");
        for bad in [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "192.0.2.50",
            "192.0.2.255",
            "192.0.2.0",
            "255.255.255.255",
            "224.0.0.1",
            "239.1.1.1",
            "198.51.100.1",
        ] {
            assert_eq!(found(own, &[], &[bad]), [], "{bad}");
            let default = [route("0.0.0.0/0", good)];
            assert_eq!(found(own, &[], &[bad, good]), default, "{bad}");
            let other = ("203.0.113.0/24", bad);
            assert_eq!(found(own, &[other, ("0.0.0.0/0", good)], &[]), default, "{bad}");
            assert_eq!(found(own, &[("0.0.0.0/0", bad)], &[good]), default, "{bad}");
        }
    }

    #[test]
    fn a04_networks_without_room_have_gateways_all_the_same() {
        for (own, router) in [
            ("192.0.2.0/31", "192.0.2.1"),
            ("192.0.2.1/31", "192.0.2.0"),
            ("192.0.2.50/32", "192.0.2.1"),
            ("192.0.2.50/32", "169.254.169.1"),
            ("10.1.2.3/8", "10.255.255.254"),
        ] {
            assert_eq!(found(own, &[], &[router]), [route("0.0.0.0/0", router)], "{own}");
        }
        let near = [("198.51.100.1/32", ""), ("0.0.0.0/0", "198.51.100.1")];
        assert_eq!(found("192.0.2.50/24", &near, &[]).len(), 2, "a gateway that a way on the link leads to");
    }

    #[test]
    fn a04_classless_ways_stand_in_for_routers_but_for_a_default_route_of_no_use() {
        let own = "192.0.2.50/24";
        let way = ("203.0.113.0/24", "192.0.2.9");
        assert_eq!(found(own, &[way], &["192.0.2.1"]), [route(way.0, way.1)]);
        let both = [route(way.0, way.1), route("0.0.0.0/0", "192.0.2.1")];
        assert_eq!(found(own, &[way, ("0.0.0.0/0", "192.0.2.255")], &["192.0.2.1"]), both);
    }
}
