//! Who answers questions for names, and in which domains short names are looked for: all that plan, leases
//! and routers tell, in one file.

use farrier_linux::netlink::is_link_local;
use farrier_linux::sysfs;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

/// One file for each source, whose names tell the order.
const DIRECTORY: &str = "run/farrier/name-servers";
/// What the resolver reads, the first three of them.
const RESOLVER: &str = "etc/resolv.conf";
/// First words of its lines.
const SERVER: &str = "nameserver";
const SEARCH: &str = "search";
/// How many bytes of domains, and how many of them, every resolver takes.
const MAX_SEARCH: usize = 255;
const MAX_DOMAINS: usize = 6;

/// Who named the servers; earlier ones go first.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// The plan of the network.
    Plan,
    /// The DHCP lease of an interface.
    Lease(&'a str),
    /// A router, or a DHCP server over IPv6, on the link of an interface.
    Ipv6(&'a str),
}

/// Keeps servers and search domains of a source instead of those it named before, below the root directory.
///
/// # Errors
///
/// A file cannot be written.
pub fn remember(root: &Path, source: Source<'_>, servers: &[IpAddr], domains: &[String]) -> io::Result<()> {
    let directory = root.join(DIRECTORY);
    fs::create_dir_all(&directory)?;
    let name = match source {
        Source::Plan => "0".to_owned(),
        Source::Lease(interface) => format!("1-{interface}"),
        Source::Ipv6(interface) => format!("2-{interface}"),
    };
    let searched = domains.iter().filter(|domain| is_domain(domain)).map(|domain| (SEARCH, domain.clone()));
    let servers =
        servers.iter().filter(|server| can_answer(server)).map(|server| (SERVER, shown(*server, source)));
    let lines: String = searched.chain(servers).map(|(key, value)| format!("{key} {value}\n")).collect();
    fs::write(directory.join(name), lines)?;
    let all = sysfs::entries(&directory).into_iter();
    let text: String = all.filter_map(|name| fs::read_to_string(directory.join(name)).ok()).collect();
    let resolver = root.join(RESOLVER);
    if let Some(parent) = resolver.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(resolver, resolver_file(&text))
}

/// The lines of all sources as a resolver reads them, which heeds the last line with domains alone.
fn resolver_file(lines: &str) -> String {
    let mut search = SEARCH.to_owned();
    let mut domains: Vec<&str> = Vec::new();
    let mut servers = String::new();
    for (key, value) in lines.lines().filter_map(|line| line.split_once(' ')) {
        let fits = domains.len() < MAX_DOMAINS && search.len() + 1 + value.len() <= MAX_SEARCH;
        if key == SERVER {
            let line = format!("{SERVER} {value}\n");
            // A server that two sources name must not take the place of another one.
            if !servers.contains(&line) {
                servers += &line;
            }
        } else if fits && !domains.contains(&value) {
            domains.push(value);
            search += &format!(" {value}");
        }
    }
    if domains.is_empty() { servers } else { format!("{search}\n{servers}") }
}

/// Whether another machine can have the address: the resolver asks three servers at most, each for seconds.
fn can_answer(server: &IpAddr) -> bool {
    let is_none = server.is_unspecified()
        || server.is_loopback()
        || server.is_multicast()
        || *server == IpAddr::from(Ipv4Addr::BROADCAST);
    if is_none {
        tracing::warn!("{server} cannot be a name server and is ignored");
    }
    !is_none
}

/// The address of a server, with its link where it is good on that alone.
fn shown(server: IpAddr, source: Source<'_>) -> String {
    match source {
        Source::Ipv6(interface) if is_link_local(server) => format!("{server}%{interface}"),
        _ => server.to_string(),
    }
}

/// Whether it may stand in the file: a name of letters, digits, dashes, underscores and dots.
fn is_domain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !text.is_empty() && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_goes_first_and_a_new_lease_replaces_the_old() {
        let root = tempfile::tempdir().unwrap();
        for (source, server) in [
            (Source::Ipv6("eth0"), "2001:db8::53"),
            (Source::Lease("eth0"), "192.0.2.53"),
            (Source::Lease("eth0"), "192.0.2.54"),
            (Source::Plan, "198.51.100.53"),
        ] {
            remember(root.path(), source, &[server.parse().unwrap()], &[]).unwrap();
        }
        let text = fs::read_to_string(root.path().join(RESOLVER)).unwrap();
        assert_eq!(text, "nameserver 198.51.100.53\nnameserver 192.0.2.54\nnameserver 2001:db8::53\n");
    }

    #[test]
    fn a04_a_server_that_cannot_answer_takes_no_place() {
        let root = tempfile::tempdir().unwrap();
        let tell = |source, servers: &[&str]| {
            let servers: Vec<_> = servers.iter().map(|server| server.parse().unwrap()).collect();
            remember(root.path(), source, &servers, &[]).unwrap();
            fs::read_to_string(root.path().join(RESOLVER)).unwrap()
        };
        let none = ["0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "ff02::fb"];
        let servers = [&none[..], &["192.0.2.53"]].concat();
        assert_eq!(tell(Source::Lease("eth0"), &servers), "nameserver 192.0.2.53\n");
        assert_eq!(tell(Source::Lease("eth1"), &["192.0.2.53"]), "nameserver 192.0.2.53\n");
        let of_router = tell(Source::Ipv6("eth0"), &["fe80::1", "2001:db8::53"]);
        assert_eq!(of_router, "nameserver 192.0.2.53\nnameserver fe80::1%eth0\nnameserver 2001:db8::53\n");
    }

    #[test]
    fn x16_the_domains_of_all_sources_are_searched_as_far_as_resolvers_can() {
        let root = tempfile::tempdir().unwrap();
        let tell = |source, domains: &[&str]| {
            let domains: Vec<_> = domains.iter().map(|domain| (*domain).to_owned()).collect();
            remember(root.path(), source, &[], &domains).unwrap();
            fs::read_to_string(root.path().join(RESOLVER)).unwrap()
        };
        assert_eq!(tell(Source::Lease("eth0"), &["a.example", "b"]), "search a.example b\n");
        assert_eq!(tell(Source::Plan, &["plan.example", "b"]), "search plan.example b a.example\n");
        let odd = ["c", "d e", "f\nnameserver 192.0.2.66", "", &"g".repeat(250)];
        assert_eq!(tell(Source::Lease("eth0"), &odd), "search plan.example b c\n");
        let many = ["1", "2", "3", "4", "5"];
        assert_eq!(tell(Source::Lease("eth0"), &many), "search plan.example b 1 2 3 4\n");
        assert_eq!(tell(Source::Lease("eth0"), &[]), "search plan.example b\n");
    }
}
