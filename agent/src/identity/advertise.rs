//! The address under which the conductor can call this machine (section 2.7).

use crate::conductor::client::ConductorClient;
use crate::settings::options::Options;
use farrier_linux::netlink::{self, is_link_local};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use tokio::net::lookup_host;
use tokio::time::sleep;

/// The host under which the conductor calls the agent: an address, or a name that was configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host(String);

impl Host {
    /// The address, for which a certificate can be made.
    ///
    /// # Errors
    ///
    /// [`AdvertiseError::NotAnAddress`] when the configured host is a name.
    pub fn address(&self) -> Result<IpAddr, AdvertiseError> {
        self.0.parse().map_err(|_| AdvertiseError::NotAnAddress(self.0.clone()))
    }

    /// The host as URLs write it (F33).
    pub fn url_form(&self) -> String {
        match self.0.parse() {
            Ok(IpAddr::V6(address)) => format!("[{address}]"),
            _ => self.0.clone(),
        }
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self(address.to_string())
    }
}

/// No address was found.
#[derive(Debug, thiserror::Error)]
pub enum AdvertiseError {
    /// The configured host is not an address.
    #[error(
        "ipa-advertise-host={0} is not an IP address, for which a certificate could be made: \
         give the address, or a certificate of your own with listen_tls"
    )]
    NotAnAddress(String),
    /// The configured interface has no address.
    #[error("ipa-network-interface={0} is not an interface with an IPv4 address")]
    NoInterfaceAddress(String),
    /// There is no route, or no server at its end.
    #[error("no address of this machine reaches {urls}: check addresses, routes, VLANs and the servers")]
    NoRoute {
        /// The API URLs.
        urls: String,
    },
}

/// The configured host, else the address of the configured interface, else the source address of the
/// route to an API that answers (F32).
///
/// # Errors
///
/// [`AdvertiseError`] when the budget of rounds is spent.
pub async fn host(options: &Options, client: &ConductorClient) -> Result<Host, AdvertiseError> {
    if let Some(host) = &options.advertise_host {
        return Ok(Host(host.trim_matches(['[', ']']).to_owned()));
    }
    for round in 1..=options.ip_lookup_attempts.max(1) {
        let address = match &options.network_interface {
            Some(interface) => interface_address(interface),
            None => route(client).await,
        };
        if let Some(address) = address {
            return Ok(address.into());
        }
        tracing::warn!(round, "no address to advertise yet");
        sleep(options.ip_lookup_sleep.duration()).await;
    }
    Err(match &options.network_interface {
        Some(interface) => AdvertiseError::NoInterfaceAddress(interface.clone()),
        None => AdvertiseError::NoRoute { urls: client.urls().join(", ") },
    })
}

fn interface_address(interface: &str) -> Option<IpAddr> {
    let addresses = netlink::addresses().unwrap_or_default();
    let mut own = addresses.iter().filter(|one| one.interface == interface && one.address.is_ipv4());
    own.next().map(|one| one.address)
}

/// The source address towards the API that answered the agent over HTTP.
async fn route(client: &ConductorClient) -> Option<IpAddr> {
    source_address(&client.answering_url()?).await
}

/// The address from which the kernel would call the host of a URL.
async fn source_address(url: &str) -> Option<IpAddr> {
    let url = reqwest::Url::parse(url).ok()?;
    let port = url.port_or_known_default()?;
    let host = url.host_str()?.trim_matches(['[', ']']);
    lookup_host((host, port)).await.ok()?.find_map(|target| source_towards(target.ip()))
}

/// The address from which the kernel would call another one; connecting a datagram socket sends
/// nothing.
pub fn source_towards(target: IpAddr) -> Option<IpAddr> {
    let any: IpAddr =
        if target.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // Any port will do; none is ever called.
    socket.connect((target, 9)).ok()?;
    let local = socket.local_addr().ok()?.ip();
    (!is_link_local(local)).then_some(local)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::http;
    use crate::settings::options::UrlList;

    #[test]
    fn f33_ipv6_hosts_are_bracketed() {
        for (host, expected) in
            [("192.0.2.1", "192.0.2.1"), ("2001:db8::1", "[2001:db8::1]"), ("agent.example", "agent.example")]
        {
            assert_eq!(Host(host.to_owned()).url_form(), expected);
        }
        assert!(Host("agent.example".to_owned()).address().is_err());
    }

    #[tokio::test]
    async fn the_route_to_loopback_is_loopback() {
        for (url, expected) in [
            ("http://127.0.0.1:6385", Some("127.0.0.1")),
            ("https://127.0.0.1", Some("127.0.0.1")),
            ("not a url", None),
        ] {
            assert_eq!(source_address(url).await, expected.map(|text| text.parse().unwrap()), "{url}");
        }
    }

    /// A port that nobody listens on, and one that answers everything with a fault.
    async fn dead_and_live() -> [String; 2] {
        let dead = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let live = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let urls = [&dead, &live].map(|one| format!("http://{}", one.local_addr().unwrap()));
        tokio::spawn(async move { axum::serve(live, axum::Router::new()).await });
        urls
    }

    #[tokio::test]
    async fn f32_only_a_server_that_answers_counts() {
        http::install_tls_provider();
        let [dead, live] = dead_and_live().await;
        let loopback = Some(IpAddr::from([127, 0, 0, 1]));
        for (urls, expected) in [
            (vec![dead.clone(), live.clone()], loopback),
            (vec![live], loopback),
            (vec![dead], None),
            (vec!["not a url".to_owned()], None),
        ] {
            let options = Options { api_url: UrlList(urls.clone()), ..Options::default() };
            let client = ConductorClient::new(&options, http::client(&options).unwrap()).unwrap();
            assert_eq!(route(&client).await, None, "nobody has answered yet");
            client.server_version().await;
            assert_eq!(route(&client).await, expected, "{urls:?}");
        }
    }

    #[test]
    fn an_interface_without_an_address_is_passed_over() {
        assert_eq!(interface_address("nosuch0"), None);
    }
}
