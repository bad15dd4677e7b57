//! What a request body may be: how long, and how many values (section 8.1).

use crate::wire::reply::{BODY, Refusal};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use farrier_conductor::untrusted::json as foreign_json;
use farrier_protocol::json::{self, JsonError};

/// Longest body, in bytes (Ironic's `max_json_body_size`).
const LIMIT: usize = 1 << 20;

/// Longest body of a request to deploy, in bytes: a config drive of 64 MiB as base64, and some more.
const PROVISION_LIMIT: usize = 96 << 20;

/// Longest body that only who wants it looks at, in bytes.
const SHORT: usize = 64 << 10;

/// Reads the body of a request whole, and refuses one that is too long, or has too many values, before it is parsed.
pub(crate) async fn read(request: Request, next: Next) -> Response {
    let limit = limit(request.uri().path());
    let (parts, body) = request.into_parts();
    let announced =
        parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return too_long(limit).into_response();
    }
    let bytes = match to_bytes(body, limit).await {
        Ok(bytes) => bytes,
        Err(_) => return too_long(limit).into_response(),
    };
    match check(&bytes).await {
        Ok(()) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Err(refusal) => refusal.into_response(),
    }
}

fn limit(path: &str) -> usize {
    match path.trim_end_matches('/') {
        path if path.ends_with("/states/provision") || path.ends_with("/deployment") => PROVISION_LIMIT,
        _ => LIMIT,
    }
}

pub(crate) fn too_long(limit: usize) -> Refusal {
    let text = format!("the request body was cut off, or is longer than {limit} bytes; send less");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text)
}

/// Refuses a long body whose values are too many, on a thread that serves no other request. The
/// reader of the request checks short bodies, and refuses a body that is not JSON.
async fn check(body: &Bytes) -> Result<(), Refusal> {
    if body.len() <= SHORT {
        return Ok(());
    }
    let body = body.clone();
    match foreign_json::examine(body, |body| json::check(body, &BODY)).await.1 {
        Ok(()) | Err(JsonError::Unusable(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_drives_may_be_long_and_nothing_else() {
        for (path, expected) in [
            ("/v1/nodes/n1/states/provision", PROVISION_LIMIT),
            ("/nodes/n1/states/provision/", PROVISION_LIMIT),
            ("/v1/nodes/n1", LIMIT),
            ("/v1/nodes/provision", LIMIT),
        ] {
            assert_eq!(limit(path), expected, "{path}");
        }
    }
}
