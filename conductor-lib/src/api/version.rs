//! API versions: the header of requests and replies, and the description at the root (8.1).

use super::reply::Refusal;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use farrier_protocol::heartbeat::{ApiVersion, VERSION_HEADER};
use serde_json::{Value, json};

const MINIMUM: ApiVersion = ApiVersion::v1(1);
const MAXIMUM: ApiVersion = ApiVersion::v1(72);

/// Puts the version that a request asks for into its extensions, and tells in the reply what there
/// is. Requests for other versions are refused.
pub(crate) async fn negotiate(mut request: Request, next: Next) -> Response {
    let (version, mut response) = match asked(request.headers()) {
        Ok(version) => {
            request.extensions_mut().insert(version);
            (version, next.run(request).await)
        }
        Err(refusal) => (MINIMUM, refusal.into_response()),
    };
    for (name, value) in [
        ("x-openstack-ironic-api-minimum-version", MINIMUM),
        ("x-openstack-ironic-api-maximum-version", MAXIMUM),
        ("x-openstack-ironic-api-version", version),
    ] {
        let value = HeaderValue::from_str(&value.to_string()).expect("digits and a dot");
        response.headers_mut().insert(name, value);
    }
    response
}

fn asked(headers: &HeaderMap) -> Result<ApiVersion, Refusal> {
    let Some(value) = headers.get(VERSION_HEADER) else { return Ok(MINIMUM) };
    let text = value.to_str().unwrap_or_default();
    if text == "latest" {
        return Ok(MAXIMUM);
    }
    match text.parse::<ApiVersion>() {
        Ok(version) if (MINIMUM..=MAXIMUM).contains(&version) => Ok(version),
        _ => Err(Refusal::new(
            StatusCode::NOT_ACCEPTABLE,
            format!("API version {text:?} is not supported; ask for {MINIMUM} to {MAXIMUM}"),
        )),
    }
}

/// What is answered at the root of an interface at this URL: agents read `default_version.version`, and without it send
/// neither token nor certificate.
pub fn description(url: &str) -> Value {
    let version = json!({
        "id": "v1",
        "links": [{"href": format!("{url}/v1/"), "rel": "self"}],
        "status": "CURRENT",
        "min_version": MINIMUM.to_string(),
        "version": MAXIMUM.to_string(),
    });
    json!({
        "name": "Farrier conductor API",
        "description": "What deploy ramdisks call: lookup and heartbeat.",
        "default_version": version,
        "versions": [version],
    })
}
