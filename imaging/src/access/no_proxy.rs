//! Which hosts are reached without a proxy: `no_proxy` as conductors document it, host names, addresses and domains,
//! each with an optional port. Networks and `*` are understood as well, as other clients have them.

use ipnet::IpNet;
use reqwest::Url;
use std::net::{IpAddr, Ipv6Addr};

/// Every host.
const ALL: &str = "*";

/// Hosts that are reached without a proxy.
#[derive(Debug, Default)]
pub(super) struct NoProxy(Vec<Entry>);

/// Hosts, at one port or at every one.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Debug, PartialEq, Eq)]
enum Hosts {
    All,
    Network(IpNet),
    /// A host, and those whose names end with it: in lower case, without a dot at either end.
    Domain(String),
}

impl NoProxy {
    /// Reads the entries between commas. One that no URL can match is told once and left out.
    pub(super) fn read(text: &str) -> Self {
        let entry = |text: &str| {
            let entry = Entry::read(text);
            if entry.is_none() {
                tracing::warn!(
                    "no_proxy: {text:?} matches no host: give a host, an address or a network, with :PORT or without"
                );
            }
            entry
        };
        Self(text.split(',').map(str::trim).filter(|text| !text.is_empty()).filter_map(entry).collect())
    }

    /// Whether a URL is to be fetched without a proxy.
    pub(super) fn contains(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let (host, port) = (Host::read(host), url.port_or_known_default());
        self.0
            .iter()
            .any(|entry| entry.port.is_none_or(|own| Some(own) == port) && entry.hosts.contain(&host))
    }
}

/// A host as URLs have it.
enum Host {
    Address(IpAddr),
    Name(String),
}

impl Host {
    fn read(text: &str) -> Self {
        let plain = text.trim_start_matches('[').trim_end_matches(']');
        match plain.parse::<IpAddr>() {
            Ok(address) => Self::Address(address.to_canonical()),
            Err(_) => Self::Name(plain.trim_end_matches('.').to_ascii_lowercase()),
        }
    }
}

impl Entry {
    fn read(text: &str) -> Option<Self> {
        let (host, port) = split_port(text)?;
        Some(Self { hosts: Hosts::read(host)?, port })
    }
}

impl Hosts {
    fn read(text: &str) -> Option<Self> {
        if text == ALL {
            return Some(Self::All);
        }
        if text.contains('/') {
            return text.parse().ok().map(|network: IpNet| Self::Network(network.trunc()));
        }
        let name = text.strip_prefix(ALL).filter(|rest| rest.starts_with('.')).unwrap_or(text);
        let name = name.trim_start_matches('.').trim_end_matches('.');
        // As it stands in a URL: names in other scripts are spelt in ASCII there, and addresses in one form.
        let bracketed = if name.parse::<Ipv6Addr>().is_ok() { format!("[{name}]") } else { name.to_owned() };
        let url = Url::parse(&format!("http://{bracketed}/")).ok()?;
        let is_host_alone = url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        match Host::read(url.host_str().filter(|_| is_host_alone)?) {
            Host::Address(address) => Some(Self::Network(IpNet::from(address))),
            Host::Name(name) => is_name(&name).then_some(Self::Domain(name)),
        }
    }

    fn contain(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::All, _) => true,
            (Self::Network(network), Host::Address(address)) => network.contains(address),
            (Self::Domain(domain), Host::Name(name)) => {
                name.strip_suffix(domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            _ => false,
        }
    }
}

/// Host and port of an entry, which has colons of its own when it is an address of IPv6. Nothing where the port is
/// none.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let port = |digits: &str| digits.parse::<u16>().ok().filter(|port| *port > 0);
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return match rest.split_at_checked(1) {
            None => Some((host, None)),
            Some((":", digits)) => Some((host, Some(port(digits)?))),
            Some(_) => None,
        };
    }
    if text.matches(':').count() > 1 {
        let is_ipv6 = text.parse::<Ipv6Addr>().is_ok() || text.parse::<IpNet>().is_ok();
        return is_ipv6.then_some((text, None));
    }
    match text.split_once(':') {
        None => Some((text, None)),
        Some((host, digits)) => Some((host, Some(port(digits)?))),
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !name.is_empty() && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_exempt(entries: &str, url: &str) -> bool {
        NoProxy::read(entries).contains(&Url::parse(url).unwrap())
    }

    #[test]
    fn a11_hosts_addresses_domains_and_networks_each_with_a_port_or_without() {
        for (entries, exempt, others) in [
            (
                "images",
                &["http://images/", "https://images:8443/", "http://IMAGES./"][..],
                &["http://image/"][..],
            ),
            (
                "images:80",
                &["http://images/", "http://images:80/"],
                &["http://images:8080/", "https://images/"],
            ),
            ("images:443", &["https://images/"], &["http://images/"]),
            (
                "localhost:8080",
                &["http://localhost:8080/x"],
                &["http://localhost/", "http://127.0.0.1:8080/"],
            ),
            (
                "Example.ORG",
                &["http://example.org/", "http://a.b.example.org/", "http://example.org.:81/"],
                &["http://badexample.org/", "http://example.org.evil/", "http://org/"],
            ),
            (".example.org", &["http://a.example.org/", "http://example.org/"], &["http://anexample.org/"]),
            (".example.org:8080", &["http://a.example.org:8080/"], &["http://a.example.org/"]),
            ("*.example.org", &["http://a.example.org/"], &["http://example.net/"]),
            ("example.org.", &["http://example.org/"], &[]),
            (
                "192.0.2.5",
                &["http://192.0.2.5/", "https://192.0.2.5:1/"],
                &["http://192.0.2.50/", "http://x/"],
            ),
            ("192.0.2.5:8080", &["http://192.0.2.5:8080/"], &["http://192.0.2.5/", "http://192.0.2.6:8080/"]),
            ("192.0.2.0/24", &["http://192.0.2.77/"], &["http://192.0.3.1/", "http://[2001:db8::1]/"]),
            ("192.0.2.9/24:80", &["http://192.0.2.77/"], &["http://192.0.2.77:81/"]),
            (
                "2001:db8::1",
                &["http://[2001:db8::1]/", "http://[2001:DB8:0::1]:9/"],
                &["http://[2001:db8::2]/"],
            ),
            ("[2001:db8::1]", &["http://[2001:db8::1]/"], &["http://[2001:db8::11]/"]),
            ("[2001:db8::1]:8080", &["http://[2001:db8::1]:8080/"], &["http://[2001:db8::1]/"]),
            ("2001:db8::/32", &["http://[2001:db8:5::1]/"], &["http://[2001:db9::1]/", "http://192.0.2.1/"]),
            ("[2001:db8::]:80", &["http://[2001:db8::]/"], &["http://[2001:db8::]:81/"]),
            ("[2001:db8::/32]:80", &["http://[2001:db8:5::1]/"], &["http://[2001:db8:5::1]:81/"]),
            ("::1", &["http://[::1]:8080/"], &["http://[::2]/"]),
            ("192.0.2.5", &["http://[::ffff:192.0.2.5]/"], &[]),
            ("*", &["http://a/", "https://192.0.2.1:9/", "http://[::1]/"], &[]),
            ("*:8080", &["http://a:8080/"], &["http://a/"]),
            ("bücher.example", &["http://b%C3%BCcher.example/", "http://xn--bcher-kva.example/"], &[]),
            ("my_host", &["http://my_host/"], &[]),
            (" a , ,b:81 ,", &["http://a/", "http://b:81/"], &["http://b/", "http://c/"]),
            ("", &[], &["http://a/"]),
        ] {
            for (urls, expected) in [(exempt, true), (others, false)] {
                for url in urls {
                    assert_eq!(is_exempt(entries, url), expected, "{entries:?} {url}");
                }
            }
        }
    }

    #[test]
    fn a11_an_entry_that_matches_nothing_takes_no_other_one_with_it() {
        for odd in [
            "images:",
            "images:http",
            "images:0",
            "images:65536",
            "http://images",
            "images/path",
            "192.0.2.0/33",
            "192.0.2.0/x",
            "[::1",
            "[::1]x",
            "1::2::3",
            "a b",
            "*images",
            "ann@images",
            ".",
            ":80",
            "im?ges",
        ] {
            assert_eq!(Entry::read(odd), None, "{odd}");
            assert!(is_exempt(&format!("{odd},good"), "http://good/"), "{odd}");
            assert!(!is_exempt(odd, "http://images/"), "{odd}");
        }
    }
}
