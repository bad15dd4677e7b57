//! Virtual media by HTTP, for BMCs: whole, or the parts that they ask for.

use crate::provisioning::ranges::{self, Asked};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use clap::ValueEnum;
use farrier_drivers::virtual_media::{Medium, PublishedMedia};
use futures_util::stream;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use tokio::task::spawn_blocking;
use uuid::Uuid;

/// Bytes of a piece.
const PIECE: usize = 256 << 10;

/// Clients that may load a virtual medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Readers {
    /// Every client that knows the name of the medium.
    Anybody,
    /// Clients with the address of the BMC, if that is known.
    Bmc,
}

/// Hears how much was read of the medium of a node, in bytes, and how long the medium is.
pub(crate) type Heard = Arc<dyn Fn(Uuid, u64, u64) + Send + Sync>;

/// What answers for the published media, beside the interfaces of the conductor. What is read of a medium is told.
pub(crate) fn router(published_media: PublishedMedia, readers: Readers, heard: Heard) -> Router {
    Router::new().route("/media/{name}", get(answer)).with_state((published_media, readers, heard))
}

async fn answer(
    State((published_media, readers, heard)): State<(PublishedMedia, Readers, Heard)>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    Path(name): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    if !published_media.is_for(&name, client.ip()) && readers == Readers::Bmc {
        return StatusCode::NOT_FOUND.into_response();
    }
    let Some(medium) = published_media.medium(&name).await else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let Asked { part, reply } = match ranges::asked(&headers, medium.length()) {
        Ok(asked) => asked,
        Err(nothing) => return nothing.into_response(),
    };
    let is_iso = name.ends_with(".iso");
    let kind = if is_iso { "application/x-iso9660-image" } else { "application/octet-stream" };
    let reply = reply.header(CONTENT_TYPE, kind);
    let body = match method == Method::HEAD {
        true => Body::empty(),
        false => {
            if let Some((node, reads)) = published_media.note_reading(&name, part.end - part.start) {
                heard(node, reads.bytes, medium.length());
            }
            sent(medium, part)
        }
    };
    reply.body(body).unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

/// A part of a medium: each piece is read when the one before is taken.
fn sent(medium: Arc<Medium>, part: Range<u64>) -> Body {
    let pieces = stream::try_unfold(part, move |left| {
        let medium = Arc::clone(&medium);
        async move {
            if left.is_empty() {
                return Ok(None);
            }
            let bytes = PIECE.min(usize::try_from(left.end - left.start).unwrap_or(PIECE));
            let piece = spawn_blocking(move || medium.read_at(left.start, bytes))
                .await
                .map_err(io::Error::other)??;
            let next = left.start + piece.len() as u64..left.end;
            Ok::<_, io::Error>(Some((Bytes::from(piece), next)))
        }
    });
    Body::from_stream(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::header::CONTENT_LENGTH;
    use farrier_conductor::model::{BootDevice, NewNode, Node};
    use farrier_drivers::netboot::images::Image;
    use farrier_drivers::virtual_media::{IsoSpec, MediaLoaders};
    use farrier_media::boot_iso::Additions;
    use farrier_media::config_drive;
    use time::OffsetDateTime;

    #[tokio::test]
    async fn a_bmc_reads_a_medium_in_parts_and_that_is_known() {
        rustls::crypto::ring::default_provider().install_default().ok();
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        std::fs::create_dir_all(tree.join("boot/grub")).unwrap();
        std::fs::write(tree.join("boot/grub/grub.cfg"), "linux /vmlinuz\n").unwrap();
        std::fs::write(tree.join("vmlinuz"), vec![7; PIECE * 2]).unwrap();
        let iso = folder.path().join("farrier.iso");
        let packed = config_drive::pack(&tree).unwrap();
        std::fs::write(&iso, config_drive::unpack(&tree, &packed).unwrap()).unwrap();

        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/media", socket.local_addr().unwrap());
        let published_media =
            PublishedMedia::open(folder.path().join("media"), &base, MediaLoaders::default()).unwrap();
        let node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
        let additions = Additions { parameters: "a=1".parse().unwrap(), network_data: None };
        let spec = IsoSpec::LaidOver { iso: Image::File(iso.clone()), additions };
        let url = published_media.publish(&node, BootDevice::Cdrom, spec).await.unwrap();
        let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
        let heard: Heard = Arc::new(move |node, bytes, total| sender.send((node, bytes, total)).unwrap());
        let router = router(published_media.clone(), Readers::Anybody, heard);
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(socket, service).await });

        let reads = |published_media: &PublishedMedia| published_media.reads(&node, BootDevice::Cdrom);
        let http = reqwest::Client::new();
        let ask = async |method: Method, url: &str, range: Option<&str>| {
            let mut request = http.request(method, url);
            if let Some(range) = range {
                request = request.header("range", range);
            }
            let reply = request.send().await.unwrap();
            let length =
                reply.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
            (reply.status().as_u16(), length, reply.bytes().await.unwrap())
        };
        let (status, length, _) = ask(Method::HEAD, &url, None).await;
        let size = std::fs::metadata(&iso).unwrap().len();
        assert_eq!((status, length), (200, Some(size)));
        assert_eq!(reads(&published_media).unwrap().requests, 0, "to ask for its size is not to read it");
        let (status, _, whole) = ask(Method::GET, &url, None).await;
        assert_eq!((status, whole.len() as u64), (200, size));
        assert!(String::from_utf8_lossy(&whole).contains("linux /vmlinuz a=1\n"));
        let (status, _, part) = ask(Method::GET, &url, Some("bytes=32769-32773")).await;
        assert_eq!((status, &part[..]), (206, &b"CD001"[..]));
        assert_eq!(ask(Method::GET, &url, Some("bytes=99999999-")).await.0, 416);
        let read = reads(&published_media).unwrap();
        assert_eq!((read.requests, read.bytes), (2, size + 5));
        let first = (told.try_recv().unwrap(), told.try_recv().unwrap());
        assert_eq!(first, ((node.uuid, size, size), (node.uuid, size + 5, size)));
        assert_eq!(ask(Method::GET, &format!("{base}/{}.iso", "0".repeat(32)), None).await.0, 404);
        published_media.withdraw(&node).unwrap();
        assert!(reads(&published_media).is_none());
        assert_eq!(ask(Method::GET, &url, None).await.0, 404);
    }

    /// What knows the name of a medium gets it only where it may be the BMC, when that is wanted.
    #[tokio::test]
    async fn n05_a_medium_is_for_its_bmc_alone_when_that_is_wanted() {
        rustls::crypto::ring::default_provider().install_default().ok();
        for (bmc, readers, expected) in [
            ("http://127.0.0.1:8000", Readers::Bmc, 200),
            ("http://127.0.0.2:8000", Readers::Bmc, 404),
            ("http://127.0.0.2:8000", Readers::Anybody, 200),
            ("", Readers::Bmc, 200),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let iso = folder.path().join("own.iso");
            std::fs::write(&iso, vec![7; 4096]).unwrap();
            let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let base = format!("http://{}/media", socket.local_addr().unwrap());
            let published_media =
                PublishedMedia::open(folder.path().join("media"), &base, MediaLoaders::default()).unwrap();
            let mut node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
            if !bmc.is_empty() {
                node.driver_info.insert("redfish_address".into(), bmc.into());
            }
            let spec = IsoSpec::AsItIs { image: Image::File(iso) };
            let url = published_media.publish(&node, BootDevice::Cdrom, spec).await.unwrap();
            let service = router(published_media, readers, Arc::new(|_, _, _| ()))
                .into_make_service_with_connect_info::<SocketAddr>();
            tokio::spawn(async move { axum::serve(socket, service).await });
            let status = reqwest::get(&url).await.unwrap().status().as_u16();
            assert_eq!(status, expected, "{bmc:?} {readers:?}");
        }
    }
}
