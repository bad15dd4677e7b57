//! The listener (section 1.1).

use crate::options::Options;
use axum::Router;
use axum_server::tls_rustls::RustlsConfig;
use rustls::ServerConfig;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;

/// The listener cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}; is another agent running?")]
pub struct ListenError {
    address: SocketAddr,
    #[source]
    source: io::Error,
}

/// Opens the listener, so that the first heartbeat can promise an open port.
///
/// # Errors
///
/// [`ListenError`] when the address is taken or not of this machine.
pub fn listen(options: &Options) -> Result<TcpListener, ListenError> {
    let host = match &options.listen_host {
        Some(host) => host.trim_matches(['[', ']']).parse().unwrap_or_else(|_| {
            tracing::warn!(listen_host = host, "not an IP address; listening on every address");
            any_address()
        }),
        None => any_address(),
    };
    let address = SocketAddr::new(host, options.listen_port);
    let open = || {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    open().map_err(|source| ListenError { address, source })
}

/// Serves the router over TLS until the process ends.
///
/// # Errors
///
/// The listener broke.
pub async fn serve(listener: TcpListener, tls: ServerConfig, router: Router) -> io::Result<()> {
    let config = RustlsConfig::from_config(Arc::new(tls));
    axum_server::from_tcp_rustls(listener, config)?.serve(router.into_make_service()).await
}

/// Both families where the kernel has IPv6, which is the kernel's default for `::`.
fn any_address() -> IpAddr {
    let disabled = std::fs::read_to_string("/proc/sys/net/ipv6/conf/default/disable_ipv6");
    match disabled.as_deref().map(str::trim) {
        Ok("0") => Ipv6Addr::UNSPECIFIED.into(),
        _ => Ipv4Addr::UNSPECIFIED.into(),
    }
}
