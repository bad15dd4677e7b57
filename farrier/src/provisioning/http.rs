//! Boot files by HTTP, for iPXE, GRUB and UEFI firmware.
//!
//! A file is read as fast as its machine takes it, and no faster: two pieces are held for each. A machine that takes
//! nothing for a while loses its permit and its connection, and starts again; sooner if another one waits for that permit.

use crate::network::fair_semaphore::FairPermit;
use crate::provisioning::figures::Protocol;
use crate::provisioning::files::{Content, Files, Found};
use crate::provisioning::ranges::{self, Asked};
use crate::provisioning::transfer_trace::TransferTrace;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::header::{ALLOW, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::stream;
use prometheus_client::metrics::counter::Counter;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, SeekFrom};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Bytes of a piece.
const PIECE: usize = 256 << 10;
/// Pieces that wait for their machine.
const AHEAD: usize = 2;
/// How long a machine may take nothing.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same while another waits. A machine whose network has 1 Mbit/s takes a piece in less.
const PATIENCE_OF_OTHERS: Duration = Duration::from_secs(4);

/// What answers for names of boot files, beside the interfaces of the conductor. None of them has more than two parts, but
/// shim and GRUB ask with an empty one before them.
pub(crate) fn router(files: Arc<Files>) -> Router {
    let router = Router::new().route("/{name}", any(answer)).route("/{folder}/{name}", any(answer));
    router.route("/{empty}/{folder}/{name}", any(answer)).with_state(files)
}

/// There is no such file. The HTTP of UEFI waits for something behind the head, or for the end of the connection, and shim
/// asks for several files that it can do without.
fn not_found() -> Response {
    (StatusCode::NOT_FOUND, [(CONNECTION, "close")], "There is no such file.\n").into_response()
}

async fn answer(
    State(files): State<Arc<Files>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "GET, HEAD")]).into_response();
    }
    // Names need no escapes, so what has some is no name.
    let Some(Found { content, trace }) = files.open(uri.path(), peer.ip(), Protocol::Http).await else {
        return not_found();
    };
    let mut trace = trace.filter(|_| method == Method::GET);
    let counted = files.figures().sent(Protocol::Http);
    let Asked { part, mut reply } = match ranges::asked(&headers, content.size()) {
        Ok(asked) => asked,
        Err(nothing) => return nothing.into_response(),
    };
    let body = match content {
        Content::Text(text) => {
            reply = reply.header(CONTENT_TYPE, "text/plain; charset=utf-8");
            if let Some(trace) = &mut trace {
                trace.reached(part.end);
            }
            counted.inc_by(if method == Method::HEAD { 0 } else { part.end - part.start });
            Body::from(text.slice(part.start as usize..part.end as usize))
        }
        Content::File { .. } if method == Method::HEAD => Body::empty(),
        Content::File { file, .. } => {
            let Some(permit) = files.transfer_permit(peer.ip()).await else {
                return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "10")]).into_response();
            };
            reply = reply.header(CONTENT_TYPE, "application/octet-stream");
            sent(file, part, permit, Counters { counted, trace })
        }
    };
    reply.body(body).unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

/// The receiver of the progress.
struct Counters {
    counted: Counter,
    trace: Option<TransferTrace>,
}

/// A part of a file, as it is taken.
fn sent(file: File, part: Range<u64>, permit: FairPermit, counters: Counters) -> Body {
    let (sender, receiver) = mpsc::channel(AHEAD);
    tokio::spawn(async move {
        if let Err(error) = send(file, part, &sender, &permit, counters).await {
            timeout(PATIENCE, sender.send(Err(error))).await.ok();
        }
    });
    let pieces = stream::unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver)));
    Body::from_stream(pieces)
}

async fn send(
    mut file: File,
    part: Range<u64>,
    sender: &mpsc::Sender<io::Result<Bytes>>,
    permit: &FairPermit,
    mut counters: Counters,
) -> io::Result<()> {
    file.seek(SeekFrom::Start(part.start)).await?;
    let mut left = part.end - part.start;
    while left > 0 {
        let mut piece = Vec::with_capacity(PIECE.min(usize::try_from(left).unwrap_or(PIECE)));
        let read = (&mut file).take(left.min(PIECE as u64)).read_to_end(&mut piece).await?;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter"));
        }
        left -= read as u64;
        // It has gone, or takes nothing.
        let Some(slot) = slot(sender, permit).await else { return Ok(()) };
        slot.send(Ok(piece.into()));
        counters.counted.inc_by(read as u64);
        if let Some(trace) = &mut counters.trace {
            trace.reached(part.end - left);
        }
    }
    Ok(())
}

/// Waits until a machine takes another piece.
async fn slot<'a, T>(sender: &'a mpsc::Sender<T>, permit: &FairPermit) -> Option<mpsc::Permit<'a, T>> {
    let mut waited = Duration::ZERO;
    while waited < PATIENCE && !(waited > Duration::ZERO && permit.is_wanted()) {
        if let Ok(reserved) = timeout(PATIENCE_OF_OTHERS, sender.reserve()).await {
            return reserved.ok();
        }
        waited += PATIENCE_OF_OTHERS;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::fair_semaphore::FairSemaphore;
    use crate::provisioning::test_conductor::{PXELINUX, TestConductor};
    use axum::http::header::RANGE;
    use std::net::{IpAddr, Ipv4Addr};
    use tokio::time::Instant;

    const NONE: &str = "There is no such file.\n";

    fn uncounted() -> Counters {
        Counters { counted: Counter::default(), trace: None }
    }

    fn here() -> IpAddr {
        Ipv4Addr::LOCALHOST.into()
    }

    async fn taken(path: &std::path::Path, part: Range<u64>) -> Result<Bytes, axum::Error> {
        let semaphore = FairSemaphore::new(1);
        let permit = semaphore.take(here()).await;
        let body = sent(File::open(path).await.unwrap(), part, permit, uncounted());
        let taken = axum::body::to_bytes(body, usize::MAX).await;
        // The permit is released when the sender has seen the end.
        drop(timeout(PATIENCE, semaphore.take(here())).await.unwrap());
        taken
    }

    #[tokio::test]
    async fn a_file_is_sent_whole_or_in_part_and_one_that_is_cut_short_ends_with_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kernel");
        let content: Vec<u8> = (0..PIECE * 5 / 2).map(|n| (n % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let size = content.len() as u64;
        for part in [0..size, 5..7, PIECE as u64 - 1..PIECE as u64 + 1, size - 1..size] {
            let taken = taken(&path, part.clone()).await.unwrap();
            assert!(taken == content[part.start as usize..part.end as usize], "{part:?}");
        }
        assert!(taken(&path, 0..size + 1).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn n13_a_machine_that_takes_nothing_loses_its_permit_and_sooner_when_another_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ramdisk");
        std::fs::write(&path, vec![7; PIECE * 10]).unwrap();
        let semaphore = FairSemaphore::new(8);
        let begin = async || {
            let permit = semaphore.take(here()).await;
            sent(File::open(&path).await.unwrap(), 0..PIECE as u64 * 10, permit, uncounted())
        };
        let (body, at) = (begin().await, Instant::now());
        let other = semaphore.take("192.0.2.1".parse().unwrap()).await;
        assert!(at.elapsed() < PATIENCE_OF_OTHERS, "there are permits for others");
        // Another of the same address has none.
        drop(timeout(PATIENCE, begin()).await.unwrap());
        assert!(at.elapsed() < PATIENCE_OF_OTHERS * 3, "{:?}", at.elapsed());
        drop((body, other));
    }

    #[tokio::test]
    async fn firmware_finds_what_its_node_says_and_nothing_else() {
        rustls::crypto::ring::default_provider().install_default().ok();
        let test = TestConductor::new(b"0123456789").await;
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        // As it is served: beside others, of which one answers for all other paths.
        let others = Router::new().route("/v1/{name}", any(StatusCode::OK)).fallback(StatusCode::NOT_FOUND);
        let router = others.merge(router(Arc::clone(&test.files)));
        tokio::spawn(async move {
            axum::serve(socket, router.into_make_service_with_connect_info::<SocketAddr>()).await
        });
        let http = reqwest::Client::new();
        let ask = async |method: Method, path: &str, range: Option<&str>| {
            let mut request = http.request(method, format!("http://{address}/{path}"));
            if let Some(range) = range {
                request = request.header(RANGE, range);
            }
            let reply = request.send().await.unwrap();
            let (status, length) = (reply.status().as_u16(), reply.content_length());
            (status, length, reply.text().await.unwrap())
        };
        let kernel = test.name("deploy_kernel");
        for (path, range, status, text) in [
            ("boot.ipxe", None, 200, "#!ipxe\n"),
            (&kernel, None, 200, "0123456789"),
            (&kernel, Some("bytes=2-4"), 206, "234"),
            (&kernel, Some("bytes=10-"), 416, ""),
            ("boot.ipxe", Some("bytes=-1"), 206, "\n"),
            (&test.name("rescue_kernel"), None, 404, NONE),
            (&test.name("..%2fconfig"), None, 404, NONE),
            ("pxelinux.cfg/52-54-00-00-00-01%00", None, 404, NONE),
            ("nodes.sqlite", None, 404, NONE),
            ("v1/lookup", None, 200, ""),
            ("/grub/grub.cfg", None, 200, "set timeout=0\n"),
            ("pxelinux.cfg/default", None, 200, "localboot 0\n"),
            (&"a/".repeat(2048), None, 404, ""),
        ] {
            let (found, length, body) = ask(Method::GET, path, range).await;
            assert_eq!((found, body.as_str(), length), (status, text, Some(text.len() as u64)), "{path}");
        }
        let (status, _, body) = ask(Method::HEAD, &kernel, None).await;
        assert_eq!((status, body.as_str()), (200, ""));
        assert_eq!(ask(Method::PUT, &kernel, None).await.0, 405);
        // What is asked for by HEAD is not sent.
        assert_eq!(test.files.figures().sent(Protocol::Http).get(), 7 + 10 + 3 + 1 + 14 + 12);
        let config = ask(Method::GET, PXELINUX, None).await.2;
        assert!(config.contains(&format!("kernel {kernel}\n")), "{config}");
    }
}
