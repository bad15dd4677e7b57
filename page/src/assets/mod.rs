//! The style sheet, whose path has the digest of its content: a browser keeps it until it changes.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use ring::digest::{SHA256, digest};
use std::sync::LazyLock;

/// The style sheet.
const CSS: &str = include_str!("style.css");

/// Bytes of the digest in the path.
const DIGEST: usize = 8;

static PATH: LazyLock<String> = LazyLock::new(|| {
    let digest = digest(&SHA256, CSS.as_bytes());
    format!("/page/style-{}.css", hex::encode(&digest.as_ref()[..DIGEST]))
});

/// Where it is.
pub(crate) fn path() -> String {
    PATH.clone()
}

/// `GET` of the style sheet.
pub(crate) async fn serve() -> impl IntoResponse {
    let headers =
        [(CONTENT_TYPE, "text/css; charset=utf-8"), (CACHE_CONTROL, "public, max-age=31536000, immutable")];
    (headers, CSS)
}
