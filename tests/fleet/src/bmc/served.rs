//! Files that a fleet serves at the addresses of its BMCs, so that conductors need no other image server: a kernel and a
//! ramdisk, which nothing starts, and an image, which nothing reads.

use crate::http::{Answer, Asked, json};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};
use serde_json::Value;

/// A file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// The kernel of the ramdisk.
    Kernel,
    /// The ramdisk.
    Ramdisk,
    /// The image of an instance.
    Image,
}

/// SHA-256 of [`Served::Image`].
pub const IMAGE_SHA256: &str = "30e14955ebf1352266dc2ff8067e68104607e750abb9d3b36582b8af909fcb58";

/// Bytes of the image, which are all zero.
static IMAGE: [u8; 1 << 20] = [0; 1 << 20];

const FILES: [(Served, &str, &[u8]); 3] = [
    (Served::Kernel, "/fleet/vmlinuz", b"the kernel of a fleet\n"),
    (Served::Ramdisk, "/fleet/initramfs.img", b"the ramdisk of a fleet\n"),
    (Served::Image, "/fleet/instance.raw", &IMAGE),
];

impl Served {
    /// Its path.
    pub fn path(self) -> &'static str {
        FILES.iter().find(|(file, ..)| *file == self).map_or("", |(_, path, _)| path)
    }
}

/// The answer to who asks for a file; nothing for all others.
pub(super) fn answer(asked: &Asked) -> Option<Answer> {
    let (_, path, bytes) = FILES.into_iter().find(|(_, path, _)| *path == asked.path)?;
    let range = asked.header("range").map(|range| part(range, bytes.len()));
    let (status, part) = match range {
        _ if !matches!(asked.method, Method::GET | Method::HEAD) => {
            return Some(json(StatusCode::METHOD_NOT_ALLOWED, &Value::Null));
        }
        None => (StatusCode::OK, 0..bytes.len()),
        Some(Some(part)) => (StatusCode::PARTIAL_CONTENT, part),
        Some(None) => return Some(json(StatusCode::RANGE_NOT_SATISFIABLE, &Value::Null)),
    };
    let content_range = format!("bytes {}-{}/{}", part.start, part.end.max(1) - 1, bytes.len());
    let length = part.len();
    let body = if asked.method == Method::HEAD { Bytes::new() } else { Bytes::from_static(&bytes[part]) };
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    let mut put = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            answer.headers_mut().insert(name, value);
        }
    };
    put(ACCEPT_RANGES, "bytes".to_owned());
    put(CONTENT_LENGTH, length.to_string());
    put(ETAG, format!("\"{path}\""));
    if status == StatusCode::PARTIAL_CONTENT {
        put(CONTENT_RANGE, content_range);
    }
    Some(answer)
}

/// The part of a file that a range means, as `bytes=0-99` or `bytes=100-`; nothing where the file has none such.
fn part(range: &str, length: usize) -> Option<std::ops::Range<usize>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let first: usize = first.parse().ok()?;
    let end = if last.is_empty() { length } else { last.parse::<usize>().ok()?.checked_add(1)?.min(length) };
    (first < end).then_some(first..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    #[test]
    fn the_image_has_its_digest() {
        assert_eq!(hex::encode(Sha256::digest(IMAGE)), IMAGE_SHA256);
    }

    #[test]
    fn ranges_are_parts_of_a_file() {
        for (range, expected) in [
            ("bytes=0-0", Some(0..1)),
            ("bytes=5-", Some(5..10)),
            ("bytes=5-99", Some(5..10)),
            ("bytes=10-", None),
            ("bytes=7-3", None),
            ("bytes=-3", None),
            ("lines=0-1", None),
        ] {
            assert_eq!(part(range, 10), expected, "{range}");
        }
    }
}
