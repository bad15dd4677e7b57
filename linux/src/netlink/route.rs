//! Routes.

use super::{Netlink, index};
use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::io;
use std::net::IpAddr;

/// A way to a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// The network; that of length 0 is the default route.
    pub destination: IpNet,
    /// The next router; none, if the network is on the link itself.
    pub gateway: Option<IpAddr>,
}

impl Route {
    /// The default route through a gateway.
    pub fn default_through(gateway: IpAddr) -> Self {
        let destination = match gateway {
            IpAddr::V4(_) => IpNet::V4(ipnet::Ipv4Net::default()),
            IpAddr::V6(_) => IpNet::V6(ipnet::Ipv6Net::default()),
        };
        Self { destination, gateway: Some(gateway) }
    }
}

impl Netlink {
    /// Adds a route, or replaces the same one; the lower the metric, the sooner it is taken. The gateway
    /// is taken to be on the interface's link, whatever the addresses say.
    ///
    /// # Errors
    ///
    /// `ENETDOWN` when the link is down, `EINVAL` when gateway and network are of different families.
    pub fn add_route(&self, interface: &str, route: Route, metric: u32) -> io::Result<()> {
        let message = route_message(interface, route, metric)?;
        self.request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Takes a route away that was added with this metric.
    ///
    /// # Errors
    ///
    /// `ESRCH` when there is no such route.
    pub fn remove_route(&self, interface: &str, route: Route, metric: u32) -> io::Result<()> {
        let message = route_message(interface, route, metric)?;
        self.request(RouteNetlinkMessage::DelRoute(message), 0)
    }
}

fn route_message(interface: &str, route: Route, metric: u32) -> io::Result<RouteMessage> {
    let mut message = RouteMessage::default();
    message.header.address_family =
        if route.destination.addr().is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    message.header.destination_prefix_length = route.destination.prefix_len();
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Boot;
    message.header.kind = RouteType::Unicast;
    message.header.scope = RouteScope::Universe;
    message.attributes = vec![
        RouteAttribute::Destination(route.destination.network().into()),
        RouteAttribute::Oif(index(interface)?),
        RouteAttribute::Priority(metric),
    ];
    match route.gateway {
        Some(gateway) => {
            message.header.flags = RouteFlags::Onlink;
            message.attributes.push(RouteAttribute::Gateway(RouteAddress::from(gateway)));
        }
        None => message.header.scope = RouteScope::Link,
    }
    Ok(message)
}
