//! What every request and every answer of the page has: the identity of the browser, and headers that keep others out.

use crate::access::Access;
use crate::session::BrowserId;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;

/// Scripts and styles of this site alone, none within a page, and no place within a page of another site. Browsers send `Origin: null` with the forms
/// of a page whose policy is `no-referrer`, and the listener refuses that.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    (REFERRER_POLICY, "same-origin"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];

/// Gives a browser without an identity one. Handlers find a [`BrowserId`] among the extensions of their request.
pub(crate) async fn recognise(
    State(access): State<Arc<Access>>,
    mut request: Request,
    next: Next,
) -> Response {
    let known = access.browser(request.headers());
    let browser = known.unwrap_or_else(BrowserId::new);
    request.extensions_mut().insert(browser);
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let is_kept = headers.contains_key(CACHE_CONTROL);
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !is_kept {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if known.is_none() && !headers.contains_key(SET_COOKIE) {
            headers.insert(SET_COOKIE, access.cookie.set(&browser));
        }
    }
    response
}
