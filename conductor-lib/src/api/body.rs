//! What a request body may be: how long, and how deep (section 8.1).

use super::reply::Refusal;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Longest body, in bytes (Ironic's `max_json_body_size`).
const LIMIT: usize = 1 << 20;

/// Longest body of a request to deploy, in bytes: a config drive of 64 MiB as base64, and some more.
const PROVISION_LIMIT: usize = 96 << 20;

/// Longest report of a ramdisk, in bytes (Ironic's `max_json_body_size_inspection`).
const REPORT_LIMIT: usize = 16 << 20;

/// How deep JSON may be.
const DEPTH: usize = 25;

/// Reads the body of a request whole, and refuses one that is too long or too deep before anybody parses it.
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
    match check_depth(&bytes) {
        Ok(()) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Err(refusal) => refusal.into_response(),
    }
}

fn limit(path: &str) -> usize {
    match path.trim_end_matches('/') {
        path if path.ends_with("/states/provision") || path.ends_with("/deployment") => PROVISION_LIMIT,
        path if path.ends_with("/continue_inspection") => REPORT_LIMIT,
        _ => LIMIT,
    }
}

fn too_long(limit: usize) -> Refusal {
    let text = format!("the request body was cut off, or is longer than {limit} bytes; send less");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text)
}

fn check_depth(body: &Bytes) -> Result<(), Refusal> {
    match depth(body) > DEPTH {
        true => Err(Refusal::bad_request(format!(
            "the request body is nested more than {DEPTH} levels deep; send a flatter one"
        ))),
        false => Ok(()),
    }
}

/// How deep arrays and objects are nested, whether or not the rest of it is JSON.
fn depth(body: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = body.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => skip_text(&mut bytes),
            _ => {}
        }
    }
    deepest
}

/// Goes on to the end of a text that has begun.
fn skip_text<'a>(bytes: &mut impl Iterator<Item = &'a u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'"' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_that_of_the_value_and_not_of_its_texts() {
        for (body, expected) in [
            ("", 0),
            ("1", 0),
            ("{}", 1),
            (r#"{"a": [[], {"b": {}}], "c": {}}"#, 4),
            (r#"["[[[["]"#, 1),
            (r#"["\"[[[[\\"]"#, 1),
            (r#"["unfinished [[["#, 1),
            ("]]]][[", 2),
        ] {
            assert_eq!(depth(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn config_drives_and_reports_may_be_long_and_nothing_else() {
        for (path, expected) in [
            ("/v1/nodes/n1/states/provision", PROVISION_LIMIT),
            ("/nodes/n1/states/provision/", PROVISION_LIMIT),
            ("/v1/continue_inspection", REPORT_LIMIT),
            ("/continue_inspection/", REPORT_LIMIT),
            ("/v1/nodes/n1", LIMIT),
            ("/v1/nodes/provision", LIMIT),
        ] {
            assert_eq!(limit(path), expected, "{path}");
        }
    }
}
