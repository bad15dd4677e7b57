//! The style sheet and the scripts. The path of each has the digest of its content: a browser keeps it until it changes.

use axum::Router;
use axum::http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::{SHA256, digest};
use std::io::Write;
use std::sync::LazyLock;

/// Bytes of the digest in a path.
const DIGEST: usize = 8;

/// The style sheet.
pub(crate) static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("style", "css", "text/css; charset=utf-8", include_str!("style.css")));

/// htmx 4.0.1, `dist/htmx.min.js` of the package `htmx.org` of npm. Its licence is beside it.
pub(crate) static HTMX: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("htmx", "js", SCRIPT, include_str!("htmx-4.0.1.min.js")));

/// Keeps what a page shows as it is now.
pub(crate) static LIVE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("live", "js", SCRIPT, include_str!("live.js")));

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file that all pages share.
pub(crate) struct Asset {
    path: String,
    media_type: &'static str,
    text: &'static str,
    /// The same, compressed. Nothing in it is secret, so its length tells nothing.
    gzip: Vec<u8>,
}

impl Asset {
    fn new(name: &str, end: &str, media_type: &'static str, text: &'static str) -> Self {
        let digest = digest(&SHA256, text.as_bytes());
        let path = format!("/page/{name}-{}.{end}", hex::encode(&digest.as_ref()[..DIGEST]));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Memory can always be written to.
        encoder.write_all(text.as_bytes()).unwrap_or_default();
        Self { path, media_type, text, gzip: encoder.finish().unwrap_or_default() }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    fn response(&self, headers: &HeaderMap) -> Response {
        let kept = [
            (CONTENT_TYPE, self.media_type),
            (CACHE_CONTROL, "public, max-age=31536000, immutable"),
            (VARY, "accept-encoding"),
        ];
        match takes_gzip(headers) && !self.gzip.is_empty() {
            true => {
                let encoding = [(CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
                (kept, encoding, self.gzip.clone()).into_response()
            }
            false => (kept, self.text).into_response(),
        }
    }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let encodings = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    encodings.split(',').any(|encoding| encoding.trim() == "gzip")
}

/// The routes of all of them.
pub(crate) fn router() -> Router {
    let all = [&*STYLE, &*HTMX, &*LIVE];
    all.into_iter().fold(Router::new(), |router, asset| {
        router.route(asset.path(), get(move |headers: HeaderMap| async move { asset.response(&headers) }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of the file in the package.
    const HTMX_SHA256: &str = "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130";

    #[test]
    fn htmx_is_the_file_of_its_package() {
        assert_eq!(hex::encode(digest(&SHA256, HTMX.text.as_bytes())), HTMX_SHA256);
    }

    #[test]
    fn gzip_is_sent_to_those_alone_that_take_it() {
        for (accepted, takes) in [("gzip, deflate, br", true), ("br,gzip", true), ("br", false), ("", false)]
        {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(accepted))]);
            assert_eq!(takes_gzip(&headers), takes, "{accepted}");
            let response = HTMX.response(&headers);
            assert_eq!(response.headers().contains_key(CONTENT_ENCODING), takes);
        }
        assert!(HTMX.gzip.len() < 15 << 10, "{} bytes", HTMX.gzip.len());
    }
}
