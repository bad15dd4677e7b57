//! API versions: the header of requests and replies, and the description at the root (8.1).

use crate::wire::asked::Asked;
use crate::wire::reply::Refusal;
use crate::wire::view::links;
use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use farrier_engine::Conductor;
use farrier_protocol::heartbeat::{ApiVersion, VERSION_HEADER};
use serde_json::{Value, json};

const MINIMUM: ApiVersion = ApiVersion::v1(1);
const MAXIMUM: ApiVersion = ApiVersion::v1(110);

/// The header that all services of OpenStack have in common: a service and a version.
const COMMON_HEADER: &str = "openstack-api-version";

/// What `/v1` leads to, with the first version that has it.
const COLLECTIONS: &[(&str, u16)] = &[
    ("nodes", 1),
    ("ports", 1),
    ("drivers", 1),
    ("chassis", 1),
    ("portgroups", 23),
    ("volume", 32),
    ("conductors", 49),
    ("allocations", 52),
    ("deploy_templates", 55),
    ("shards", 82),
    ("runbooks", 92),
];

/// How this service is called in it.
const SERVICE: &str = "baremetal";

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
    let value = HeaderValue::from_str(&format!("{SERVICE} {version}")).expect("letters, digits and a dot");
    response.headers_mut().insert(COMMON_HEADER, value);
    response
}

/// Last version in which `.json` may be at the end of a path.
const SUFFIX_UNTIL: u16 = 90;

/// Takes `.json` off the end of the path of what is read, changed or deleted, where nothing is called so with it.
pub(crate) async fn without_suffix(mut request: Request, next: Next) -> Response {
    let version = request.extensions().get().copied().unwrap_or(MINIMUM);
    let has_suffix = [Method::GET, Method::PATCH, Method::DELETE].contains(request.method());
    let shortened = shortened(request.uri()).filter(|_| has_suffix && version.minor <= SUFFIX_UNTIL);
    let Some(shortened) = shortened else { return next.run(request).await };
    let found = next.clone().run(question(&request)).await.status();
    if [StatusCode::NOT_FOUND, StatusCode::BAD_REQUEST].contains(&found) {
        *request.uri_mut() = shortened;
    }
    next.run(request).await
}

/// The same without the suffix of its path.
fn shortened(uri: &Uri) -> Option<Uri> {
    let mut shortened = uri.path().strip_suffix(".json")?.to_owned();
    uri.query().into_iter().for_each(|query| shortened.extend(["?", query]));
    shortened.parse().ok()
}

/// Asks what there is at the path of a request.
fn question(request: &Request) -> Request {
    let mut question = Request::new(Body::empty());
    *question.uri_mut() = request.uri().path().parse().unwrap_or_default();
    *question.headers_mut() = request.headers().clone();
    question.headers_mut().remove(CONTENT_LENGTH);
    *question.extensions_mut() = request.extensions().clone();
    question
}

/// The version that a request wants; the common header comes first.
fn asked(headers: &HeaderMap) -> Result<ApiVersion, Refusal> {
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default().trim());
    let common = text(COMMON_HEADER).and_then(|value| value.strip_prefix(SERVICE)).map(str::trim_start);
    let Some(text) = common.or_else(|| text(VERSION_HEADER)) else { return Ok(MINIMUM) };
    if text.eq_ignore_ascii_case("latest") {
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

/// `GET /` and `GET /v1` of the ramdisks' interface.
pub(crate) async fn describe(State(conductor): State<Conductor>) -> Json<Value> {
    Json(description(&conductor.settings().api_url))
}

/// The same of the operators' interface, whose links lead to the listener that is asked.
pub(crate) async fn describe_asked(asked: Asked) -> Json<Value> {
    Json(description(&asked.url))
}

/// `GET /v1` of the operators' interface: what there is in the version that is asked for, and where.
pub(crate) async fn describe_version(asked: Asked) -> Json<Value> {
    let mut described = description(&asked.url);
    for (name, _) in COLLECTIONS.iter().filter(|(_, since)| asked.version.minor >= *since) {
        described[*name] = json!(links(&asked.url, name));
    }
    described["media_types"] =
        json!([{"base": "application/json", "type": "application/vnd.openstack.ironic.v1+json"}]);
    Json(described)
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
        "id": "v1",
        "version": version,
        "links": version["links"],
        "name": "Farrier conductor API",
        "description": "Puts operating systems on bare metal, by the REST interface of Ironic.",
        "default_version": version,
        "versions": [version],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_asked_for_by_either_header() {
        for (common, own, expected) in [
            (None, None, Some(MINIMUM)),
            (None, Some("1.58"), Some(ApiVersion::v1(58))),
            (None, Some("latest"), Some(MAXIMUM)),
            (Some("baremetal 1.72"), Some("1.58"), Some(ApiVersion::v1(72))),
            (Some("baremetal latest"), None, Some(MAXIMUM)),
            (Some("compute 2.1"), Some("1.58"), Some(ApiVersion::v1(58))),
            (None, Some("1.110"), Some(MAXIMUM)),
            (None, Some("1.111"), None),
            (None, Some("1.0"), None),
            (None, Some("2.1"), None),
            (None, Some("one"), None),
            (Some("baremetal 1.999"), None, None),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [(COMMON_HEADER, common), ("x-openstack-ironic-api-version", own)] {
                if let Some(value) = value {
                    headers.insert(name, HeaderValue::from_static(value));
                }
            }
            assert_eq!(asked(&headers).ok(), expected, "{common:?} {own:?}");
        }
    }
}
