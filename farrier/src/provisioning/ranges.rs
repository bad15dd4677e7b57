//! Parts of files by HTTP (RFC 9110, section 14).

use axum::http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, RANGE};
use axum::http::response::Builder;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use std::ops::Range;

/// What is asked for of a file.
pub(super) struct Asked {
    /// These bytes of it; all of them where nothing is said.
    pub(super) part: Range<u64>,
    /// The head of the reply that says so.
    pub(super) reply: Builder,
}

/// The file has nothing of what is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NothingOfThat {
    size: u64,
}

impl IntoResponse for NothingOfThat {
    fn into_response(self) -> Response {
        let size = format!("bytes */{}", self.size);
        (StatusCode::RANGE_NOT_SATISFIABLE, [(CONTENT_RANGE, size)]).into_response()
    }
}

/// What is asked for of a file of so many bytes.
pub(super) fn asked(headers: &HeaderMap, size: u64) -> Result<Asked, NothingOfThat> {
    let reply = Response::builder().header(ACCEPT_RANGES, "bytes");
    let (part, reply) = match part(headers, size)? {
        Some(part) => {
            let place = format!("bytes {}-{}/{size}", part.start, part.end - 1);
            (part, reply.status(StatusCode::PARTIAL_CONTENT).header(CONTENT_RANGE, place))
        }
        None => (0..size, reply),
    };
    let reply = reply.header(CONTENT_LENGTH, part.end - part.start);
    Ok(Asked { part, reply })
}

/// The part that is asked for, where it is one: what is not understood, or more than one, is no wish (RFC 9110, 14.2).
fn part(headers: &HeaderMap, size: u64) -> Result<Option<Range<u64>>, NothingOfThat> {
    let asked =
        headers.get(RANGE).and_then(|value| value.to_str().ok()?.strip_prefix("bytes=")?.split_once('-'));
    let number = |text: &str| text.parse::<u64>().ok();
    let part = match asked {
        Some(("", last)) => number(last).map(|last| size.saturating_sub(last)..size),
        Some((first, "")) => number(first).map(|first| first..size),
        Some((first, last)) => number(first)
            .zip(number(last))
            .filter(|(first, last)| first <= last)
            .map(|(first, last)| first..last.saturating_add(1).min(size)),
        None => None,
    };
    match part {
        Some(part) if part.start >= part.end => Err(NothingOfThat { size }),
        part => Ok(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_may_be_asked_for() {
        for (asked, expected) in [
            (None, Ok(None)),
            (Some("bytes=0-4"), Ok(Some(0..5))),
            (Some("bytes=5-"), Ok(Some(5..10))),
            (Some("bytes=-3"), Ok(Some(7..10))),
            (Some("bytes=-30"), Ok(Some(0..10))),
            (Some("bytes=8-99"), Ok(Some(8..10))),
            (Some("bytes=9-18446744073709551615"), Ok(Some(9..10))),
            (Some("bytes=10-"), Err(NothingOfThat { size: 10 })),
            (Some("bytes=-0"), Err(NothingOfThat { size: 10 })),
            (Some("bytes=4-2"), Ok(None)),
            (Some("bytes=0-1,4-5"), Ok(None)),
            (Some("lines=0-1"), Ok(None)),
            (Some("bytes=x"), Ok(None)),
        ] {
            let mut headers = HeaderMap::new();
            headers.extend(asked.map(|asked| (RANGE, asked.parse().unwrap())));
            assert_eq!(part(&headers, 10), expected, "{asked:?}");
        }
        assert_eq!(part(&HeaderMap::new(), 0), Ok(None));
    }
}
