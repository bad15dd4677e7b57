//! The listener (section 1.1): HTTP/1.1 and nothing else, over TLS or plain.

use super::connections::{Connections, Place, Seat};
use super::limits::Limits;
use super::patient::Patient;
use crate::commands::allowance::Allowance;
use crate::settings::options::Options;
use axum::Router;
use axum::body::Body;
use farrier_linux::priority::{self, Work};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use nix::sys::socket::{setsockopt, sockopt};
use rustls::ServerConfig;
use rustls::server::Acceptor;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

/// Name of the threads that serve strangers.
const THREADS: &str = "listener";
/// How long replies may take once the agent stops serving.
const GRACE: Duration = Duration::from_secs(5);
/// Pause when no client can be let in.
const PAUSE: Duration = Duration::from_millis(10);
/// Bytes of a connection that the kernel keeps in each direction; it takes twice as much for its own needs.
/// An answer to a stranger fits in, and a config drive comes at 30 MB/s over a network of a millisecond.
const KERNEL_BUFFER: usize = 32 << 10;
/// Milliseconds for which a client need not confirm what it was sent, also after its connection was closed.
const UNCONFIRMED: u32 = 30_000;

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
        // Connections inherit these.
        setsockopt(&listener, sockopt::RcvBuf, &KERNEL_BUFFER)?;
        setsockopt(&listener, sockopt::SndBuf, &KERNEL_BUFFER)?;
        setsockopt(&listener, sockopt::TcpUserTimeout, &UNCONFIRMED)?;
        Ok(listener)
    };
    open().map_err(|source| ListenError { address, source })
}

/// Serves the router, over TLS if there are settings for it, until `stop` is done; then the listener closes at
/// once, and replies that are under way are finished. Requests take of `allowance`.
///
/// A client that says nothing, or says it too slowly, or does not take its answer, is dropped, and so is one too
/// many ([`Connections`]).
///
/// # Errors
///
/// The listener broke.
pub async fn serve(
    listener: TcpListener,
    tls: Option<ServerConfig>,
    router: Router,
    allowance: Arc<Allowance>,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_within(Limits::default(), listener, tls, router, allowance, stop).await
}

/// [`serve`] on threads of its own, which give way to all others: whatever strangers do at the listener, heartbeats leave
/// in time, and images are written.
///
/// # Errors
///
/// As [`serve`], or there is no such thread.
pub async fn serve_apart(
    listener: TcpListener,
    tls: Option<ServerConfig>,
    router: Router,
    allowance: Arc<Allowance>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (ended, outcome) = oneshot::channel();
    thread::Builder::new().name(THREADS.to_owned()).spawn(move || {
        if let Err(error) = priority::lower(Work::Strangers) {
            tracing::warn!(%error, "requests to the API have the same priority as the agent");
        }
        // They inherit its priority. While one reads a large command, the other answers.
        let runtime = Builder::new_multi_thread().worker_threads(2).thread_name(THREADS).enable_all().build();
        let served =
            runtime.and_then(|runtime| runtime.block_on(serve(listener, tls, router, allowance, stop)));
        ended.send(served).ok();
    })?;
    outcome.await.unwrap_or_else(|_| Err(io::Error::other("the listener has panicked")))
}

/// [`serve`] with other bounds for clients.
pub(super) async fn serve_within(
    limits: Limits,
    listener: TcpListener,
    tls: Option<ServerConfig>,
    router: Router,
    allowance: Arc<Allowance>,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let host = Host { limits, tls: tls.map(Arc::new), router };
    let connections = Connections::new(limits.connections, allowance);
    let graceful = GracefulShutdown::new();
    let mut stop = pin!(stop);
    // What is still connected at the end is cut off with this.
    let mut attended = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        while attended.try_join_next().is_some() {}
        let admitted = accepted.map(|(stream, peer)| (stream, peer, connections.admit(peer)));
        match admitted {
            Ok((stream, peer, Some(place))) => {
                attended.spawn(host.clone().attend(stream, peer, place, graceful.watcher()));
            }
            Ok((_, _, None)) => sleep(PAUSE).await,
            Err(error) => {
                tracing::debug!(%error, "a connection cannot be accepted");
                sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    timeout(GRACE, graceful.shutdown()).await.ok();
    Ok(())
}

/// What every request knows of its connection.
#[derive(Debug, Clone)]
pub struct Visit {
    /// Who is at the other end.
    pub peer: SocketAddr,
    /// The place of the connection.
    pub seat: Seat,
    /// `https` or `http`.
    pub scheme: &'static str,
}

/// What serves a connection.
#[derive(Clone)]
struct Host {
    limits: Limits,
    tls: Option<Arc<ServerConfig>>,
    router: Router,
}

impl Host {
    /// Serves one connection, until it ends or its place is taken.
    async fn attend(self, stream: TcpStream, peer: SocketAddr, mut place: Place, watcher: Watcher) {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let visit = Visit { peer, seat: place.seat(), scheme };
        let stream = Patient::new(stream, self.limits.patience);
        let served = async {
            match self.tls.clone() {
                None => self.converse(stream, visit, watcher).await,
                Some(tls) => {
                    let greeting = self.greet(stream, tls, &place.handshakes);
                    if let Ok(Ok(stream)) = timeout(self.limits.patience, greeting).await {
                        self.converse(stream, visit, watcher).await;
                    }
                }
            }
        };
        tokio::select! {
            _ = &mut place.taken => {}
            () = served => {}
        }
    }

    /// Reads what a client begins with, and shows it the certificate when it is its turn.
    async fn greet<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        tls: Arc<ServerConfig>,
        turns: &Semaphore,
    ) -> io::Result<TlsStream<S>> {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let _turn = turns.acquire().await;
        let buffer = Some(self.limits.buffer_bytes);
        hello.into_stream_with(tls, |session| session.set_buffer_limit(buffer)).await
    }

    /// Answers the requests that come over `stream`.
    async fn converse(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        visit: Visit,
        watcher: Watcher,
    ) {
        let router = TowerToHyperService::new(self.router.clone());
        let service = service_fn(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(visit.clone());
            router.call(request.map(Body::new))
        });
        let limits = &self.limits;
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.patience)
            .max_header_size(limits.head_bytes)
            .max_headers(limits.headers)
            .max_buf_size(limits.buffer_bytes)
            .serve_connection(TokioIo::new(stream), service);
        // What is wrong with a connection is its client's business.
        watcher.watch(connection).await.ok();
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
mod tests {
    use super::*;
    use axum::routing::get;
    use std::future::pending;

    #[tokio::test]
    async fn f49_the_listener_is_where_it_was_asked_to_be_and_may_be_plain() {
        crate::network::http::install_tls_provider();
        let options =
            Options { listen_host: Some("127.0.0.2".to_owned()), listen_port: 0, ..Options::default() };
        let listener = listen(&options).unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(address.ip(), IpAddr::from([127, 0, 0, 2]));
        let router = Router::new().route("/", get(async || "here"));
        tokio::spawn(serve(listener, None, router, Allowance::of_machine(), pending()));
        let client = crate::network::http::client(&options).unwrap();
        let reply = client.get(format!("http://{address}/")).send().await.unwrap();
        assert_eq!(reply.text().await.unwrap(), "here");
        let elsewhere = format!("http://127.0.0.1:{}/", address.port());
        assert!(client.get(elsewhere).send().await.is_err());
    }
}
