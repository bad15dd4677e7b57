//! A URL as the checks need it, taken apart.

use reqwest::Url;
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::net::lookup_host;

/// Where a URL leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Name or address, without brackets.
    pub host: String,
    /// Port, that of the protocol where the URL has none.
    pub port: u16,
    /// Whether TLS is spoken there.
    pub is_tls: bool,
}

impl Target {
    /// Takes a URL apart; nothing when it leads nowhere.
    pub fn of(url: &str) -> Option<Self> {
        let url = Url::parse(url).ok()?;
        let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
        Some(Self { host, port: url.port_or_known_default()?, is_tls: url.scheme() == "https" })
    }

    /// The host as an address, if it is not a name.
    pub fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Every address of the host.
    ///
    /// # Errors
    ///
    /// The resolver's.
    pub async fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(lookup_host((self.host.as_str(), self.port)).await?.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let target = |host: &str, port, is_tls| Some(Target { host: host.into(), port, is_tls });
        for (url, expected) in [
            ("http://192.0.2.1:6385", target("192.0.2.1", 6385, false)),
            ("https://ironic.example/baremetal", target("ironic.example", 443, true)),
            ("http://[2001:db8::1]", target("2001:db8::1", 80, false)),
            ("http://", None),
            ("", None),
        ] {
            assert_eq!(Target::of(url), expected, "{url}");
        }
    }
}
