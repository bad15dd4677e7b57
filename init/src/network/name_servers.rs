//! Who answers questions for names, and in which domains short names are looked for: all that plan, leases
//! and routers tell, in one file.

use farrier_linux::sysfs;
use std::fs;
use std::io;
use std::net::IpAddr;
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
    let servers = servers.iter().map(|server| (SERVER, server.to_string()));
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
            servers += &format!("{SERVER} {value}\n");
        } else if fits && !domains.contains(&value) {
            domains.push(value);
            search += &format!(" {value}");
        }
    }
    if domains.is_empty() { servers } else { format!("{search}\n{servers}") }
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
