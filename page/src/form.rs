//! What a form sends.

use crate::refusal::Refusal;
use axum::RequestExt;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use std::sync::Arc;
use url::form_urlencoded;

/// What forms of HTML send.
pub(crate) const MEDIA_TYPE: &str = "application/x-www-form-urlencoded";

/// Longest body: no form has more than some texts.
const LONGEST: usize = 64 << 10;

/// The fields of a form, or of the query of an address.
#[derive(Debug, Clone, Default)]
pub(crate) struct Form(Arc<Vec<(String, String)>>);

impl Form {
    /// Reads names and values.
    pub(crate) fn of(text: &[u8]) -> Self {
        Self(Arc::new(form_urlencoded::parse(text).into_owned().collect()))
    }

    /// The text of a field, without space around it; empty where there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.verbatim(name).trim()
    }

    /// The text of a field as it was typed, such as a password.
    pub(crate) fn verbatim(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
    }

    /// All of them.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = Refusal;

    async fn from_request(mut request: Request, _: &S) -> Result<Self, Refusal> {
        let kind =
            request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(MEDIA_TYPE) {
            let title = "The request cannot be used";
            let text = format!("The Content-Type of a form is {MEDIA_TYPE}, not {kind:?}.");
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, title, text));
        }
        DefaultBodyLimit::max(LONGEST).apply(&mut request);
        let body: Result<Bytes, _> = request.extract().await;
        match body {
            Ok(body) => Ok(Self::of(&body)),
            Err(error) => Err(Refusal::bad_request(format!("The form cannot be read: {error}"))),
        }
    }
}
