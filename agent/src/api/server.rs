//! The listener (section 1.1).

use super::connections::{Connections, Seated};
use super::limits::Limits;
use crate::options::Options;
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::{AddExtension, Next, from_fn_with_state};
use axum::response::Response;
use axum_server::accept::Accept;
use axum_server::tls_rustls::RustlsConfig;
use axum_server::{Handle, Server};
use hyper_util::rt::TokioTimer;
use rustls::ServerConfig;
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// The router as it serves one connection.
type Routes = AddExtension<Router, ConnectInfo<SocketAddr>>;

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

/// Serves the router, over TLS if there are settings for it, until `stop` is done; then the listener closes at once, and replies
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
    tls: Option<ServerConfig>,
    router: Router,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_within(Limits::default(), listener, tls, router, stop).await
}

/// [`serve`] with other bounds for clients.
pub(super) async fn serve_within(
    limits: Limits,
    listener: TcpListener,
    tls: Option<ServerConfig>,
    router: Router,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    match tls {
        Some(tls) => {
            let config = RustlsConfig::from_config(Arc::new(tls));
            let server = axum_server::from_tcp_rustls(listener, config)?;
            run(limits, server.map(|acceptor| acceptor.handshake_timeout(limits.patience)), router, stop)
                .await
        }
        None => run(limits, axum_server::from_tcp(listener)?, router, stop).await,
    }
}

async fn run<A>(
    limits: Limits,
    server: Server<SocketAddr, A>,
    router: Router,
    stop: impl Future<Output = ()>,
) -> io::Result<()>
where
    A: Accept<Seated<TcpStream>, Routes, Service = Routes> + Clone + Send + Sync + 'static,
    A::Stream: AsyncRead + AsyncWrite + Unpin + Send,
    A::Future: Send,
{
    let handle = Handle::new();
    let connections = Connections::new(limits.connections);
    let mut server =
        server.handle(handle.clone()).map(|inner| Seating { inner, connections: connections.clone() });
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

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;

    #[tokio::test]
    async fn f49_the_listener_is_where_it_was_asked_to_be_and_may_be_plain() {
        crate::http::install_tls_provider();
        let options =
            Options { listen_host: Some("127.0.0.2".to_owned()), listen_port: 0, ..Options::default() };
        let listener = listen(&options).unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(address.ip(), IpAddr::from([127, 0, 0, 2]));
        let router = Router::new().route("/", get(async || "here"));
        tokio::spawn(serve(listener, None, router, pending()));
        let client = crate::http::client(&options).unwrap();
        let reply = client.get(format!("http://{address}/")).send().await.unwrap();
        assert_eq!(reply.text().await.unwrap(), "here");
        let elsewhere = format!("http://127.0.0.1:{}/", address.port());
        assert!(client.get(elsewhere).send().await.is_err());
    }
}
