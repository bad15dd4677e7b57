//! The address under which the conductor can call this machine (section 2.7).

use crate::agent::Host;
use crate::conductor::client::ConductorClient;
use crate::options::Options;
use farrier_linux::netlink::is_link_local;
use std::net::IpAddr;
use tokio::net::{UdpSocket, lookup_host};
use tokio::time::sleep;

/// No address was found.
#[derive(Debug, thiserror::Error)]
pub enum AdvertiseError {
    /// The configured host is not an address.
    #[error("ipa-advertise-host={0} is not an IP address: the certificate needs one")]
    NotAnAddress(String),
    /// There is no route.
    #[error("no address of this machine has a route to {urls}: check addresses, routes and VLANs")]
    NoRoute {
        /// The API URLs.
        urls: String,
    },
}

/// The configured host, else the source address of the route to the API (F32).
///
/// # Errors
///
/// [`AdvertiseError`] when the budget of rounds is spent.
pub async fn host(options: &Options, client: &ConductorClient) -> Result<Host, AdvertiseError> {
    if let Some(host) = &options.advertise_host {
        let address = host.trim_matches(['[', ']']).parse();
        return address
            .map(|address| Host { address })
            .map_err(|_| AdvertiseError::NotAnAddress(host.clone()));
    }
    let urls = client.urls();
    for round in 1..=options.ip_lookup_attempts.max(1) {
        for url in &urls {
            if let Some(address) = source_address(url).await {
                return Ok(Host { address });
            }
        }
        tracing::warn!(round, "no route to the conductor yet");
        sleep(options.ip_lookup_sleep.duration()).await;
    }
    Err(AdvertiseError::NoRoute { urls: urls.join(", ") })
}

/// Asks the kernel which source address it would use; connecting a datagram socket sends nothing.
async fn source_address(url: &str) -> Option<IpAddr> {
    let url = reqwest::Url::parse(url).ok()?;
    let port = url.port_or_known_default()?;
    let host = url.host_str()?.trim_matches(['[', ']']);
    for target in lookup_host((host, port)).await.ok()? {
        let any = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let Ok(socket) = UdpSocket::bind(any).await else { continue };
        if socket.connect(target).await.is_ok()
            && let Ok(local) = socket.local_addr()
            && !is_link_local(local.ip())
        {
            return Some(local.ip());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
