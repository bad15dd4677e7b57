//! A listener: HTTP/1.1, plain or over TLS, whose clients are held to [`Limits`].

use crate::network::fair_semaphore::{FairPermit, FairSemaphore};
use crate::serve::listen::body_memory::BodyMemory;
use crate::serve::listen::body_timeout::TimedBody;
use crate::serve::listen::connection_limit::{ConnectionLimit, ConnectionSlot};
use crate::serve::listen::limits::Limits;
use crate::serve::listen::returned_stream::ReturnedStream;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use farrier_access::Denial;
use farrier_node_api::authorization::denied;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The TLS settings of a listener, which change when its certificate is renewed.
pub(crate) type Tls = watch::Receiver<Arc<ServerConfig>>;

/// Whether the listener stops.
type Stopped = watch::Receiver<bool>;

/// Where the paths begin that read the store: those of the node API, and of the page.
const READING: [&str; 2] = ["/v1", farrier_page::ROOT];

/// Reason of the refusal where there is no memory for a body, or another client got it.
const NO_MEMORY: &str = "there is no memory for the body of this request now; send it again later";

/// Reason of the refusal of a client that has too many connections.
const NO_PLACE: &str =
    "this client has too many connections to this listener; use fewer, and send the request again later";

/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(10);

/// How long a client that has all its answers may keep its side of a connection open.
const LEAVE: Duration = Duration::from_secs(5);

/// What a client gets that speaks plain HTTP where TLS is spoken.
const PLAIN_REPLY: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n\
    {\"error_message\": \"{\\\"faultcode\\\": \\\"Client\\\", \\\"faultstring\\\": \
    \\\"this port speaks HTTPS: use https:// in the URL\\\", \\\"debuginfo\\\": null}\"}\n";

/// Serves a router until `stop` is done; then the listener closes, and answers that are under way are finished. A
/// handler finds who asks as [`ConnectInfo`] of a [`SocketAddr`].
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let (memory, requests) = (BodyMemory::new(limits.bodies), FairSemaphore::new(limits.requests));
    let host = Host { limits, tls, router, memory, requests };
    let connections = ConnectionLimit::new(limits.connections);
    let (stopping, stopped) = watch::channel(false);
    let mut stop = pin!(stop);
    // What is still connected at the end is cut off with this.
    let mut attended = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        while attended.try_join_next().is_some() {}
        match accepted {
            Ok((stream, peer)) => {
                // Answers are not held back for more; a socket that refuses this works as well.
                stream.set_nodelay(true).ok();
                let slot = connections.admit(peer.ip());
                let is_full = slot.is_full;
                attended.spawn(host.clone().attend(stream, peer, slot, stopped.clone()));
                if is_full {
                    // Those that are turned away are told so before more come.
                    yield_now().await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    stopping.send_replace(true);
    drop(stopped);
    // Each conversation has a receiver, until its last answer is sent.
    timeout(limits.grace, stopping.closed()).await.ok();
}

/// Ends a connection on both sides. GRUB leaves some open for the system that it starts, and calls from the same port after
/// the next boot: a connection of which this side still knew would be in its way. So would one that this side ends first,
/// for a minute; therefore it is not told to close those that it closes by itself.
async fn part(mut stream: TcpStream, patience: Duration) {
    let ended = async {
        stream.shutdown().await?;
        let mut rest = [0; 512];
        while stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    if timeout(patience, ended).await.is_err() {
        // A socket that refuses this is closed as any other.
        stream.set_zero_linger().ok();
    }
}

/// Waits until a connection that is turned away is to be cut off: at once where too many are turned away, else after a time
/// for its request and the answer.
async fn lost(turned_away: &mut watch::Receiver<bool>) {
    if turned_away.wait_for(|away| *away).await.is_err() {
        return;
    }
    let closed = async { while turned_away.changed().await.is_ok() {} };
    timeout(LEAVE, closed).await.ok();
}

/// The place of a connection among those of its listener.
#[derive(Clone)]
struct Place {
    /// Whether a whole request of it is being answered.
    is_answered: Arc<AtomicBool>,
    /// Whether it has had a request.
    is_used: watch::Sender<bool>,
    /// Whether it is turned away.
    turned_away: watch::Receiver<bool>,
}

impl Place {
    /// Waits until it is turned away while no whole request is being answered. What is being answered goes on.
    async fn is_lost_before_the_answer(&mut self) {
        let is_told = self.turned_away.wait_for(|away| *away).await.is_ok();
        if !is_told || self.is_answered.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until it is turned away after its first request: clients repeat what they send then. One that has not asked yet
    /// is to be told when it asks.
    async fn is_to_end(&mut self) {
        let mut is_used = self.is_used.subscribe();
        let is_told = self.turned_away.wait_for(|away| *away).await.is_ok();
        if !is_told || is_used.wait_for(|used| *used).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// What serves a connection.
#[derive(Clone)]
struct Host {
    limits: Limits,
    tls: Option<Tls>,
    router: Router,
    memory: BodyMemory,
    requests: FairSemaphore,
}

impl Host {
    /// Serves one connection, until it ends or has no place any more.
    async fn attend(
        self,
        stream: TcpStream,
        peer: SocketAddr,
        mut slot: ConnectionSlot,
        mut stopped: Stopped,
    ) {
        let place = Place {
            is_answered: Arc::clone(&slot.is_answered),
            is_used: watch::Sender::new(false),
            turned_away: slot.turned_away.clone(),
        };
        let served = async {
            let Some(tls) = self.tls.clone() else {
                let (stream, back) = ReturnedStream::new(stream);
                self.converse(stream, peer, place, stopped).await;
                if let Ok(stream) = back.await {
                    part(stream, self.limits.patience.min(LEAVE)).await;
                }
                return;
            };
            let greeted = tokio::select! {
                greeted = timeout(self.limits.patience, greet(stream, tls)) => greeted,
                _ = stopped.wait_for(|stopped| *stopped) => return,
            };
            if let Ok(Ok(Some(stream))) = greeted {
                self.converse(stream, peer, place, stopped).await;
            }
        };
        tokio::select! {
            () = lost(&mut slot.turned_away) => {}
            () = served => {}
        }
    }

    /// Answers the requests that come over a stream. An answer that is under way is sent before the connection closes.
    async fn converse(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: SocketAddr,
        place: Place,
        mut stopped: Stopped,
    ) {
        let mut waiting = place.clone();
        let service = service_fn(|request| self.answer_in_turn(request, peer, place.clone()));
        let mut connection = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                // Boot loaders compare the names of headers letter by letter, as GRUB 2.06 does.
                .title_case_headers(true)
                .header_read_timeout(self.limits.patience)
                .max_header_size(self.limits.head)
                .max_buf_size(self.limits.head)
                .serve_connection(TokioIo::new(stream), service)
        );
        tokio::select! {
            // What is wrong with a connection is its client's business.
            _ = connection.as_mut() => return,
            _ = stopped.wait_for(|stopped| *stopped) => {}
            () = waiting.is_to_end() => {}
        }
        connection.as_mut().graceful_shutdown();
        connection.await.ok();
    }

    /// Answers a request, or tells a client with too many connections to come again.
    async fn answer_in_turn(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
        mut place: Place,
    ) -> Result<Response<Body>, Infallible> {
        place.is_used.send_replace(true);
        let is_answered = Arc::clone(&place.is_answered);
        let mut response = tokio::select! {
            biased;
            () = place.is_lost_before_the_answer() => Ok(unavailable(NO_PLACE)),
            response = self.answer(request, peer, is_answered) => response,
        };
        if *place.turned_away.borrow()
            && let Ok(response) = &mut response
        {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    async fn answer(
        &self,
        mut request: Request<Incoming>,
        peer: SocketAddr,
        is_answered: Arc<AtomicBool>,
    ) -> Result<Response<Body>, Infallible> {
        request.extensions_mut().insert(ConnectInfo(peer));
        let reception = self.memory.reception(peer.ip(), Arc::clone(&is_answered));
        // Boot files have permits of their own, which last longer.
        let needs_permit = READING.iter().any(|root| request.uri().path().starts_with(root));
        let permit = Arc::<Mutex<Option<FairPermit>>>::default();
        let (requests, taken, patience) = (self.requests.clone(), Arc::clone(&permit), self.limits.patience);
        let permitted = async move {
            if !needs_permit {
                return true;
            }
            let permit = timeout(patience, requests.take(peer.ip())).await.ok();
            let has_come = permit.is_some();
            *taken.lock().unwrap_or_else(PoisonError::into_inner) = permit;
            has_come
        };
        let has_body = !request.body().is_end_stream();
        let respond = async {
            let router = TowerToHyperService::new(self.router.clone());
            if has_body {
                let timed = |body| Body::new(TimedBody::new(body, self.limits, reception.clone(), permitted));
                return router.call(request.map(timed)).await;
            }
            reception.is_whole();
            if !permitted.await {
                return Ok(unavailable("too many requests are being answered now; send it again later"));
            }
            router.call(request.map(|_| Body::empty())).await
        };
        let response = tokio::select! {
            response = respond => response,
            () = reception.given_up() => Ok(unavailable(NO_MEMORY)),
        };
        is_answered.store(false, Ordering::Relaxed);
        drop(permit);
        if reception.is_short() { Ok(unavailable(NO_MEMORY)) } else { response }
    }
}

/// The response to a client that should come again.
fn unavailable(reason: &str) -> Response<Body> {
    denied(Denial::Unavailable { reason: reason.to_owned() })
}

/// Shakes hands; gives nothing when the client speaks no TLS.
async fn greet(mut stream: TcpStream, tls: Tls) -> io::Result<Option<TlsStream<TcpStream>>> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 1 && first[0].is_ascii_uppercase() {
        // A connection with unread bytes is reset when it closes, and the answer with it.
        let _request = stream.read(&mut [0; 8 << 10]).await?;
        stream.write_all(PLAIN_REPLY.as_bytes()).await?;
        return Ok(None);
    }
    let config = Arc::clone(&tls.borrow());
    TlsAcceptor::from(config).accept(stream).await.map(Some)
}

#[cfg(test)]
#[path = "listener_tests.rs"]
mod tests;
