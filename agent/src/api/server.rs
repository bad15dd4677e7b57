//! The listener (section 1.1).

use crate::options::Options;
use axum::Router;
use axum_server::Handle;
use axum_server::accept::Accept;
use axum_server::tls_rustls::RustlsConfig;
use hyper_util::rt::TokioTimer;
use rustls::ServerConfig;
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// How long a client may take for its handshake, and for the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections at a time; a conductor has one or two.
const MAX_CONNECTIONS: usize = 64;
/// How long replies may take once the agent stops serving.
const GRACE: Duration = Duration::from_secs(5);

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

/// Serves the router over TLS until `stop` is done; then the listener closes at once, and replies
/// that are under way are finished.
///
/// A client that says nothing, or says it too slowly, is dropped, and so is one too many: whoever
/// can reach the port must not be able to keep the conductor out.
///
/// # Errors
///
/// The listener broke.
pub async fn serve(
    listener: TcpListener,
    tls: ServerConfig,
    router: Router,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let config = RustlsConfig::from_config(Arc::new(tls));
    let handle = Handle::new();
    let mut server = axum_server::from_tcp_rustls(listener, config)?
        .handle(handle.clone())
        .map(|acceptor| Capped { inner: acceptor.handshake_timeout(PATIENCE), handle: handle.clone() });
    server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let stopping = async {
        stop.await;
        handle.graceful_shutdown(Some(GRACE));
        pending::<Infallible>().await
    };
    tokio::select! {
        served = server.serve(router.into_make_service()) => served,
        never = stopping => match never {},
    }
}

/// Refuses connections beyond [`MAX_CONNECTIONS`].
#[derive(Clone)]
struct Capped<A> {
    inner: A,
    handle: Handle<SocketAddr>,
}

impl<I, S, A> Accept<I, S> for Capped<A>
where
    A: Accept<I, S>,
    A::Future: Send + 'static,
{
    type Stream = A::Stream;
    type Service = A::Service;
    type Future = Pin<Box<dyn Future<Output = io::Result<(A::Stream, A::Service)>> + Send>>;

    fn accept(&self, stream: I, service: S) -> Self::Future {
        let connections = self.handle.connection_count();
        if connections > MAX_CONNECTIONS {
            tracing::warn!(connections, "a connection is refused: too many are open");
            return Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) });
        }
        Box::pin(self.inner.accept(stream, service))
    }
}

/// Both families where the kernel has IPv6, which is the kernel's default for `::`.
fn any_address() -> IpAddr {
    let disabled = std::fs::read_to_string("/proc/sys/net/ipv6/conf/default/disable_ipv6");
    match disabled.as_deref().map(str::trim) {
        Ok("0") => Ipv6Addr::UNSPECIFIED.into(),
        _ => Ipv4Addr::UNSPECIFIED.into(),
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
