//! Checks of this machine's own side: cable, switch, DHCP, addresses.

use super::examination::Host;
use super::switch;
use super::verdict::Finding;
use farrier_hardware::inventory::lldp;
use farrier_init::mac_address::MacAddress;
use farrier_linux::dhcp::{self, Answer, Client, Question, Request};
use farrier_linux::netlink::InterfaceAddress;
use farrier_protocol::inventory::NetworkInterface;
use std::io;
use std::time::Duration;
use tokio::task::spawn_blocking;

/// How long DHCP servers are asked.
const DHCP_PATIENCE: Duration = Duration::from_secs(8);

/// Whether the interface has a carrier.
pub async fn link(host: &Host, name: &str) -> Finding {
    let nic = host.nics.iter().find(|nic| nic.name == name);
    judge_link(nic, host.nics.iter().any(|nic| nic.has_carrier))
}

fn judge_link(nic: Option<&NetworkInterface>, is_any_up: bool) -> Finding {
    let Some(nic) = nic else {
        let action = "Pack the driver of its card, and its firmware, with farrier-image build";
        return Finding::failed("this machine has no network interface with a hardware address", action);
    };
    let driver = nic.driver.as_deref().unwrap_or("no driver");
    let facts = format!("{}, {driver}", nic.mac_address);
    match (nic.has_carrier, nic.speed_mbps) {
        (true, Some(speed)) => Finding::good(format!("up at {speed} Mbit/s, {facts}")),
        (true, None) => Finding::good(format!("up, {facts}")),
        (false, _) if is_any_up => Finding::unused(format!("no carrier, {facts}")),
        (false, _) => Finding::failed(
            format!("no carrier, {facts}"),
            "Check cable, transceiver and the port of the switch",
        ),
    }
}

/// What the switch says about the port.
pub async fn lldp(host: &Host, name: &str) -> Finding {
    let (names, patience) = (vec![name.to_owned()], host.options.lldp_timeout.duration());
    let heard = spawn_blocking(move || lldp::listen(&names, patience)).await.unwrap_or_default();
    switch::judge(heard.get(name).map(Vec::as_slice), patience)
}

/// Whether a DHCP server answers where there is no IPv4 address yet.
pub async fn dhcp(host: &Host, name: &str) -> Finding {
    let mut own = host.addresses.iter().filter(|address| address.interface == name);
    if let Some(own) = own.find(|address| address.address.is_ipv4()) {
        return Finding::good(format!("not asked: has {}/{} already", own.address, own.prefix));
    }
    let nic = host.nics.iter().find(|nic| nic.name == name);
    let Some(MacAddress(hardware_address)) = nic.and_then(|nic| MacAddress::parse(&nic.mac_address)) else {
        return Finding::unused("not asked: no Ethernet address");
    };
    let interface = name.to_owned();
    let asked = spawn_blocking(move || {
        let question = Question {
            interface: &interface,
            client: Client::Ethernet(hardware_address),
            transaction: rand::random(),
            request: Request::Discover,
            host_name: None,
        };
        dhcp::ask(&question, DHCP_PATIENCE)
    });
    let answer = asked.await.unwrap_or_else(|error| Err(io::Error::other(error)));
    judge_dhcp(answer, !host.addresses.is_empty())
}

fn judge_dhcp(answer: io::Result<Option<Answer>>, has_address_elsewhere: bool) -> Finding {
    match answer {
        Ok(Some(Answer::Given(lease))) => Finding::doubtful(
            format!("{} offers {}, which this interface does not have yet", lease.server, lease.address),
            "Look in the log for why the DHCP client did not take it",
        ),
        Ok(Some(Answer::Refused { server })) => {
            Finding::failed(format!("{server} refuses an address"), "Let it know this hardware address")
        }
        Ok(None) if has_address_elsewhere => Finding::unused("no DHCP server answers"),
        Ok(None) => Finding::failed(
            format!("no DHCP server answers in {} s", DHCP_PATIENCE.as_secs()),
            "Check the VLAN of the switch port, spanning tree (port fast), the DHCP relay and the server",
        ),
        Err(error) => Finding::unused(format!("not asked: {error}")),
    }
}

/// Whether an address reaches further than its link.
pub async fn address(host: &Host) -> Finding {
    judge_address(&host.addresses)
}

fn judge_address(addresses: &[InterfaceAddress]) -> Finding {
    if addresses.is_empty() {
        let action = "Mend DHCP, or give a static address";
        return Finding::failed("no address that reaches further than its own link", action);
    }
    let list: Vec<_> =
        addresses.iter().map(|one| format!("{} {}/{}", one.interface, one.address, one.prefix)).collect();
    Finding::good(list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_linux::dhcp::Lease;

    /// State and text of a finding.
    fn line(finding: Finding) -> String {
        finding.of("x", "").to_string()
    }

    #[test]
    fn no_network_interface_is_one_line_with_what_to_do() {
        let line = line(judge_link(None, false));
        assert!(line.starts_with("FAILED") && line.contains("driver"), "{line}");
    }

    #[test]
    fn a_link_that_is_down_matters_only_where_none_is_up() {
        let nic = |has_carrier, speed_mbps| NetworkInterface {
            mac_address: "52:54:00:00:00:01".into(),
            has_carrier,
            speed_mbps,
            ..NetworkInterface::default()
        };
        for (nic, is_any_up, expected) in [
            (
                nic(true, Some(25_000)),
                true,
                "ok        x       up at 25000 Mbit/s, 52:54:00:00:00:01, no driver",
            ),
            (nic(true, None), true, "ok        x       up, 52"),
            (nic(false, None), true, "unused    x       no carrier"),
            (nic(false, None), false, "FAILED    x       no carrier"),
        ] {
            let line = line(judge_link(Some(&nic), is_any_up));
            assert!(line.starts_with(expected), "{line}");
        }
    }

    #[test]
    fn dhcp_that_answers_late_or_never_is_told_apart() {
        let server = [192, 0, 2, 2].into();
        let offer = Lease {
            server,
            address: [192, 0, 2, 15].into(),
            mask: None,
            routers: Vec::new(),
            routes: Vec::new(),
            mtu: None,
            name_servers: Vec::new(),
            domains: Vec::new(),
            host_name: None,
            seconds: None,
        };
        for (answer, elsewhere, expected) in [
            (Ok(Some(Answer::Given(offer))), false, "CAUTION"),
            (Ok(Some(Answer::Refused { server })), false, "FAILED"),
            (Ok(None), false, "FAILED"),
            (Ok(None), true, "unused"),
            (Err(io::ErrorKind::PermissionDenied.into()), false, "unused"),
        ] {
            let line = line(judge_dhcp(answer, elsewhere));
            assert!(line.starts_with(expected), "{line}");
        }
    }

    #[test]
    fn addresses_are_listed_with_their_interfaces() {
        let address = |address: &str| InterfaceAddress {
            interface: "eth0".into(),
            address: address.parse().unwrap(),
            prefix: 24,
        };
        let line_of = |addresses: &[InterfaceAddress]| line(judge_address(addresses));
        let both = [address("192.0.2.15"), address("2001:db8::15")];
        assert!(line_of(&both).ends_with("eth0 192.0.2.15/24, eth0 2001:db8::15/24"), "{}", line_of(&both));
        assert!(line_of(&[]).starts_with("FAILED"));
    }
}
