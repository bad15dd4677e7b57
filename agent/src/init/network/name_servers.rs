//! Who answers questions for names: all that plan, leases and routers tell, in one file.

use farrier_linux::sysfs;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

/// One file for each source, whose names tell the order.
const DIRECTORY: &str = "run/farrier/name-servers";
/// What the resolver reads, the first three of them.
const RESOLVER: &str = "etc/resolv.conf";

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

/// Keeps the servers of a source instead of those it named before, below the root directory.
///
/// # Errors
///
/// A file cannot be written.
pub fn remember(root: &Path, source: Source<'_>, servers: &[IpAddr]) -> io::Result<()> {
    let directory = root.join(DIRECTORY);
    fs::create_dir_all(&directory)?;
    let name = match source {
        Source::Plan => "0".to_owned(),
        Source::Lease(interface) => format!("1-{interface}"),
        Source::Ipv6(interface) => format!("2-{interface}"),
    };
    let lines: String = servers.iter().map(|server| format!("nameserver {server}\n")).collect();
    fs::write(directory.join(name), lines)?;
    let all = sysfs::entries(&directory).into_iter();
    let text: String = all.filter_map(|name| fs::read_to_string(directory.join(name)).ok()).collect();
    let resolver = root.join(RESOLVER);
    if let Some(parent) = resolver.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(resolver, text)
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
            remember(root.path(), source, &[server.parse().unwrap()]).unwrap();
        }
        let text = fs::read_to_string(root.path().join(RESOLVER)).unwrap();
        assert_eq!(text, "nameserver 198.51.100.53\nnameserver 192.0.2.54\nnameserver 2001:db8::53\n");
    }
}
