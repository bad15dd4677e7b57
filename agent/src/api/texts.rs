//! Answers made of JSON texts that others read too: nothing is copied but what is on its way.

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Parts of a JSON text, in order.
#[derive(Debug)]
pub struct Texts(VecDeque<Bytes>);

impl Texts {
    /// An object with one key, under which these texts are listed.
    pub fn list(key: &str, entries: Vec<Bytes>) -> Self {
        let mut parts = VecDeque::from([Bytes::from(format!("{{\"{key}\":["))]);
        for (number, entry) in entries.into_iter().enumerate() {
            if number > 0 {
                parts.push_back(Bytes::from_static(b","));
            }
            parts.push_back(entry);
        }
        parts.push_back(Bytes::from_static(b"]}"));
        Self(parts)
    }
}

impl From<Bytes> for Texts {
    fn from(text: Bytes) -> Self {
        Self(VecDeque::from([text]))
    }
}

impl HttpBody for Texts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|part| part.len() as u64).sum())
    }
}

impl IntoResponse for Texts {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], Body::new(self)).into_response()
    }
}
