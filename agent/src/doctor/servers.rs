//! Checks of the way to the conductor and of its answers.

use super::examination::Host;
use super::target::Target;
use super::verdict::Finding;
use crate::conductor::client::ConductorClient;
use crate::conductor::discovery;
use crate::conductor::error::ApiError;
use crate::identity::advertise::source_towards;
use crate::network::http;
use crate::settings::options::{Options, UrlList};
use farrier_hardware::inventory::nics;
use farrier_protocol::heartbeat::ApiVersion;
use futures_util::future::join_all;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a host may take to accept a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(6);
/// What a URL is found wanting that an earlier check let pass.
const NO_HOST: &str = "the URL names no host";

/// Whether there is a conductor to be asked.
pub async fn api(host: &Host, url: &str) -> Finding {
    match Target::of(url) {
        Some(target) => {
            let protocol = if target.is_tls { "HTTPS" } else { "HTTP" };
            Finding::good(format!("{protocol} on port {} of {}", target.port, target.host))
        }
        None if discovery::is_wanted(&host.options) => Finding::failed(
            "multicast DNS has not found a conductor",
            "Announce it on this network, or give ipa-api-url",
        ),
        None if url.is_empty() => Finding::failed(
            "no conductor is configured",
            "Add ipa-api-url=http://… to the kernel command line",
        ),
        None => Finding::failed(NO_HOST, "Correct ipa-api-url"),
    }
}

/// Whether the kernel knows a way to the host, or to those who know its address.
pub async fn route(host: &Host, url: &str) -> Finding {
    let address = Target::of(url).and_then(|target| target.address());
    let wanted = address.map_or_else(|| host.name_servers.clone(), |address| vec![address]);
    let ways: Vec<_> = wanted.into_iter().map(|to| (to, source_towards(to))).collect();
    judge_route(&ways)
}

/// The verdict about destinations with the source address towards each.
fn judge_route(ways: &[(IpAddr, Option<IpAddr>)]) -> Finding {
    let known = ways.iter().find_map(|(to, from)| Some((to, (*from)?)));
    match (known, ways.first()) {
        (Some((to, from)), _) => Finding::good(format!("to {to} from {from}")),
        (None, Some((to, _))) => Finding::failed(
            format!("no route to {to}"),
            "Let the DHCP server give a router (option 3), or correct address and prefix",
        ),
        (None, None) => Finding::good("not needed: no name server is known"),
    }
}

/// Whether the name of the host has an address that can be a conductor's.
pub async fn dns(host: &Host, url: &str) -> Finding {
    let Some(target) = Target::of(url) else { return Finding::unused(NO_HOST) };
    if target.address().is_some() {
        return Finding::good("not needed: the URL has an address");
    }
    let found = target.resolve().await.map(|found| found.iter().map(SocketAddr::ip).collect());
    judge_dns(&target.host, found, &host.name_servers)
}

fn judge_dns(host: &str, found: io::Result<Vec<IpAddr>>, servers: &[IpAddr]) -> Finding {
    let servers = servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match found {
        _ if servers.is_empty() && host != "localhost" => Finding::failed(
            "no name server is known",
            "Let the DHCP server give one (option 6), or put an address into ipa-api-url",
        ),
        Ok(found) if found.is_empty() => Finding::failed(format!("{host} has no address"), correct(&servers)),
        Ok(found) if host != "localhost" && found.iter().all(|address| is_nobody(*address)) => {
            let text = format!("{servers} says that {host} is {}, which can be no conductor", list(&found));
            Finding::failed(text, correct(&servers))
        }
        Ok(found) => Finding::good(list(&found)),
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.rsplit(": ").next().unwrap_or_default();
            Finding::failed(
                format!("{servers} does not tell the address of {host} ({reason})"),
                correct(&servers),
            )
        }
    }
}

fn correct(servers: &str) -> String {
    format!("Correct the name in ipa-api-url, or its record on {servers}; is that server up?")
}

fn list(addresses: &[IpAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Addresses that lead back to this machine or nowhere: a name server that lies gives such.
fn is_nobody(address: IpAddr) -> bool {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    address.is_loopback() || address.is_unspecified() || address.is_multicast() || is_broadcast
}

/// Whether a server accepts connections.
pub async fn tcp(url: &str) -> Finding {
    let Some(target) = Target::of(url) else { return Finding::unused(NO_HOST) };
    let addresses = match target.resolve().await {
        Ok(addresses) => addresses,
        Err(error) => return Finding::failed(error.to_string(), "See the verdict on dns"),
    };
    let attempts = addresses.iter().map(async |address| {
        let connected = timeout(CONNECT_PATIENCE, TcpStream::connect(address)).await;
        (*address, connected.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into())).map(drop))
    });
    judge_tcp(&join_all(attempts).await)
}

fn judge_tcp(attempts: &[(SocketAddr, io::Result<()>)]) -> Finding {
    if let Some((address, _)) = attempts.iter().find(|(_, outcome)| outcome.is_ok()) {
        return Finding::good(format!("{address} accepts connections"));
    }
    let Some((address, Err(error))) = attempts.first() else {
        return Finding::failed("no address to connect to", "See the verdict on dns");
    };
    match error.kind() {
        ErrorKind::ConnectionRefused => Finding::failed(
            format!("{address} refuses the connection"),
            "Start the conductor's API there, or correct the port in ipa-api-url",
        ),
        ErrorKind::TimedOut => Finding::failed(
            format!("{address} does not answer in {} s", CONNECT_PATIENCE.as_secs()),
            "Look for a firewall, a wrong VLAN or a host that is down",
        ),
        ErrorKind::HostUnreachable => Finding::failed(
            format!("no host on its network has the address of {address}"),
            "Compare address and VLAN; is the host up?",
        ),
        ErrorKind::NetworkUnreachable => Finding::failed(
            format!("no route to {address}"),
            "Let the DHCP server give a router (option 3), or correct address and prefix",
        ),
        _ => Finding::failed(format!("{address} cannot be connected to ({error})"), "Look at its host"),
    }
}

/// Whether an API answers.
pub async fn http(host: &Host, url: &str) -> Finding {
    match client(host, url) {
        Ok(client) => judge_http(client.version().await),
        Err(finding) => finding,
    }
}

fn judge_http(answer: Result<ApiVersion, ApiError>) -> Finding {
    match answer {
        Ok(version) => Finding::good(format!("an Ironic API of version {version}")),
        Err(error) => Finding::failed(error.finding(), capitalised(error.advice())),
    }
}

/// Whether the conductor knows this machine. No token is asked for: it is handed out once per boot.
pub async fn lookup(host: &Host, url: &str) -> Finding {
    let addresses = nics::mac_addresses(&host.nics);
    match client(host, url) {
        Ok(client) => {
            let answer = client.look(&addresses).await;
            judge_lookup(&addresses, answer.map(|reply| reply.node.uuid.to_string()))
        }
        Err(finding) => finding,
    }
}

fn judge_lookup(addresses: &[String], answer: Result<String, ApiError>) -> Finding {
    match answer {
        Ok(node) => Finding::good(format!("this machine is node {node}")),
        Err(error) if error.is_conflict() => {
            Finding::doubtful("the node is locked by another task", capitalised(error.advice()))
        }
        Err(error) => {
            let text = format!("{} for {}", error.finding(), addresses.join(", "));
            Finding::failed(text, capitalised(error.advice()))
        }
    }
}

/// A client of this one URL.
fn client(host: &Host, url: &str) -> Result<ConductorClient, Finding> {
    let options = Options { api_url: UrlList(vec![url.to_owned()]), ..host.options.clone() };
    let client =
        http::client(&options).map_err(|error| Finding::failed(error.to_string(), "Correct the options"))?;
    ConductorClient::new(&options, client).ok_or_else(|| Finding::unused(NO_HOST))
}

/// An advice as a sentence of its own.
pub fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(finding: Finding) -> String {
        finding.of("x", "").to_string()
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn dns_that_lies_or_is_silent_is_named() {
        let server = [address("192.0.2.53")];
        let found = |texts: &[&str]| Ok(texts.iter().map(|text| address(text)).collect());
        let error = io::Error::other("failed to lookup address information: Try again");
        for (answer, servers, expected) in [
            (found(&["192.0.2.5"]), &server[..], "ok        x       192.0.2.5"),
            (found(&["127.0.0.1", "192.0.2.5"]), &server, "ok"),
            (
                found(&["127.0.0.1"]),
                &server,
                "FAILED    x       192.0.2.53 says that api.example is 127.0.0.1",
            ),
            (found(&["0.0.0.0"]), &server, "FAILED"),
            (found(&["255.255.255.255"]), &server, "FAILED"),
            (found(&["::"]), &server, "FAILED"),
            (found(&[]), &server, "FAILED    x       api.example has no address"),
            (
                Err(error),
                &server,
                "FAILED    x       192.0.2.53 does not tell the address of api.example (Try again)",
            ),
            (found(&["192.0.2.5"]), &[], "FAILED    x       no name server is known"),
        ] {
            let line = line(judge_dns("api.example", answer, servers));
            assert!(line.starts_with(expected), "{line}");
        }
    }

    #[test]
    fn each_way_not_to_connect_has_its_own_advice() {
        let target: SocketAddr = "192.0.2.5:6385".parse().unwrap();
        let failed = |kind: ErrorKind| (target, Err(kind.into()));
        for (attempts, expected) in [
            (vec![failed(ErrorKind::TimedOut), (target, Ok(()))], "ok"),
            (vec![failed(ErrorKind::ConnectionRefused)], "port in ipa-api-url"),
            (vec![failed(ErrorKind::TimedOut)], "firewall"),
            (vec![failed(ErrorKind::HostUnreachable)], "is the host up?"),
            (vec![failed(ErrorKind::NetworkUnreachable)], "option 3"),
            (vec![failed(ErrorKind::ConnectionReset)], "connection reset"),
            (vec![], "no address"),
        ] {
            let line = line(judge_tcp(&attempts));
            assert!(
                line.contains(expected) && line.starts_with(if expected == "ok" { "ok" } else { "FAILED" }),
                "{line}"
            );
        }
    }

    #[test]
    fn a_destination_without_a_route_fails() {
        let (here, there) = (address("192.0.2.15"), address("192.0.2.53"));
        for (ways, expected) in [
            (vec![(there, None), (there, Some(here))], "ok        x       to 192.0.2.53 from 192.0.2.15"),
            (vec![(there, None)], "FAILED    x       no route to 192.0.2.53"),
            (vec![], "ok"),
        ] {
            let line = line(judge_route(&ways));
            assert!(line.starts_with(expected), "{line}");
        }
    }
}
