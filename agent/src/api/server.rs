//! The listener (section 1.1).

use super::connections::{Connections, Seated};
use super::limits::Limits;
use crate::options::Options;
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
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
use tokio::net::TcpStream;

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
/// A client that says nothing, or says it too slowly, is dropped, and so is one too many
/// ([`Connections`]).
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
    serve_within(Limits::default(), listener, tls, router, stop).await
}

/// [`serve`] with other bounds for clients.
pub(super) async fn serve_within(
    limits: Limits,
    listener: TcpListener,
    tls: ServerConfig,
    router: Router,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let config = RustlsConfig::from_config(Arc::new(tls));
    let handle = Handle::new();
    let connections = Connections::new(limits.connections);
    let mut server = axum_server::from_tcp_rustls(listener, config)?.handle(handle.clone()).map(|acceptor| {
        let inner = acceptor.handshake_timeout(limits.patience);
        Seating { inner, connections: connections.clone() }
    });
    server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(limits.patience);
    let router = router.layer(from_fn_with_state(connections.clone(), keep_place));
    let stopping = async {
        stop.await;
        handle.graceful_shutdown(Some(GRACE));
        pending::<Infallible>().await
    };
    tokio::select! {
        served = server.serve(router.into_make_service_with_connect_info::<SocketAddr>()) => served,
        never = stopping => match never {},
    }
}

/// Gives each connection its place.
#[derive(Clone)]
struct Seating<A> {
    inner: A,
    connections: Connections,
}

impl<S, A> Accept<TcpStream, S> for Seating<A>
where
    A: Accept<Seated<TcpStream>, S>,
    A::Future: Send + 'static,
{
    type Stream = A::Stream;
    type Service = A::Service;
    type Future = Pin<Box<dyn Future<Output = io::Result<(A::Stream, A::Service)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let place = stream.peer_addr().ok().and_then(|peer| self.connections.admit(peer));
        match place {
            Some(place) => Box::pin(self.inner.accept(Seated { stream, place }, service)),
            None => Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) }),
        }
    }
}

/// A connection that waits for its reply is not idle.
async fn keep_place(
    State(connections): State<Connections>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let _request = connections.request(peer);
    next.run(request).await
}

/// Both families where the kernel has IPv6, which is the kernel's default for `::`.
fn any_address() -> IpAddr {
    let disabled = std::fs::read_to_string("/proc/sys/net/ipv6/conf/default/disable_ipv6");
    match disabled.as_deref().map(str::trim) {
        Ok("0") => Ipv6Addr::UNSPECIFIED.into(),
        _ => Ipv4Addr::UNSPECIFIED.into(),
    }
}
