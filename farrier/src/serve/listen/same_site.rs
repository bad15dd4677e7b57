//! Requests that a web page has a browser send in the name of its reader. A page cannot make a browser send a
//! body as JSON to another site unasked, cannot hide where it is from (`Origin`), and when its own name is made to lead to
//! this host (DNS rebinding), that name is in `Host`.

use axum::Router;
use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::Response;
use farrier_access::Denial;
use farrier_node_api::authorization::denied;
use farrier_node_api::{ERROR_CODE_HEADER, FOREIGN_REQUEST, INVALID_REQUEST};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// Where bodies are forms. Their pages have each form prove that it is theirs.
const FORMS: &str = "/page/";

/// Names of this host for itself.
const LOCAL_HOST: &str = "localhost";

/// Where bodies are what is typed, and no JSON.
const TYPED: (&str, &str) = ("/farrier/v1/nodes/", "/console");
const BYTES: &str = "application/octet-stream";
const FORM: &str = "application/x-www-form-urlencoded";

/// Under which names a listener is asked.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// Those that it may be asked by, beside addresses of this host; any where nothing is known.
    only: Option<Arc<BTreeSet<String>>>,
}

impl Names {
    /// Any: on a network, clients have to authenticate.
    pub(crate) fn any() -> Self {
        Self { only: None }
    }

    /// Those of this host alone, and the one of a URL by which a proxy on it is reached.
    pub(crate) fn of_host(host: Option<String>, public: Option<&Uri>) -> Self {
        let public = public.and_then(Uri::host).map(str::to_owned);
        let names = host.into_iter().chain(public).map(|name| name.to_ascii_lowercase());
        Self { only: Some(Arc::new(names.collect())) }
    }

    fn has(&self, authority: &Authority) -> bool {
        let Some(only) = &self.only else { return true };
        let name = authority.host().to_ascii_lowercase();
        let name = name.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
        let is_loopback = name.parse().is_ok_and(|address: IpAddr| address.to_canonical().is_loopback());
        let is_local = name == LOCAL_HOST || name.ends_with(".localhost");
        is_loopback || is_local || only.contains(name)
    }
}

/// A router that answers no page of another site.
pub(crate) fn same_site(router: Router, names: Names) -> Router {
    router.layer(middleware::from_fn_with_state(names, check))
}

async fn check(State(names): State<Names>, request: Request, next: Next) -> Response {
    match refusal(&names, &request) {
        None => next.run(request).await,
        Some((status, reason)) => {
            let mut response = denied(Denial::Forbidden { reason });
            *response.status_mut() = status;
            let is_foreign = status == StatusCode::FORBIDDEN;
            let code = if is_foreign { FOREIGN_REQUEST } else { INVALID_REQUEST }.to_string();
            response.headers_mut().insert(ERROR_CODE_HEADER, code.parse().expect("a code is plain text"));
            response
        }
    }
}

fn refusal(names: &Names, request: &Request) -> Option<(StatusCode, String)> {
    let headers = request.headers();
    let host = match text(headers, HOST).map(str::parse::<Authority>) {
        // HTTP/1.0, which browsers do not speak.
        None => None,
        Some(Ok(host)) if names.has(&host) => Some(host),
        Some(_) => {
            let reason = "this host is not known by that name (Host); use its address, or give --admin-url";
            return Some((StatusCode::FORBIDDEN, reason.to_owned()));
        }
    };
    if let Some(origin) = text(headers, ORIGIN) {
        let from = origin.parse::<Uri>().ok().and_then(|origin| origin.into_parts().authority);
        if from.is_none() || from != host {
            let reason = "requests from pages of another site (Origin) are refused";
            return Some((StatusCode::FORBIDDEN, reason.to_owned()));
        }
    }
    let has_body = !request.body().is_end_stream();
    let kind = text(headers, CONTENT_TYPE).unwrap_or_default();
    let path = request.uri().path();
    let (wanted, is_wanted) = match path {
        path if path.starts_with(FORMS) => (FORM, essence(kind) == FORM),
        path if path.starts_with(TYPED.0) && path.ends_with(TYPED.1) => {
            (BYTES, is_json(kind) || kind.eq_ignore_ascii_case(BYTES))
        }
        _ => ("application/json", is_json(kind)),
    };
    if !has_body || is_wanted {
        return None;
    }
    let reason = format!("the Content-Type of a body must be {wanted}, not {kind:?}");
    Some((StatusCode::UNSUPPORTED_MEDIA_TYPE, reason))
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

/// A media type without its parameters.
fn essence(kind: &str) -> String {
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// JSON, or something written as JSON, such as a JSON Patch.
fn is_json(kind: &str) -> bool {
    let kind = essence(kind);
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn status(names: &Names, path: &str, headers: &[(&str, &str)], body: &str) -> u16 {
        let mut request = Request::post(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_empty() { Body::empty() } else { Body::from(body.to_owned()) };
        refusal(names, &request.body(body).unwrap()).map_or(200, |(status, _)| status.as_u16())
    }

    #[test]
    fn n16_a_listener_on_loopback_is_asked_by_names_of_its_host_alone() {
        let public = "https://conductor.example/".parse().unwrap();
        let names = Names::of_host(Some("Smithy".to_owned()), Some(&public));
        for (host, expected) in [
            ("127.0.0.1:6386", 200),
            ("127.9.9.9", 200),
            ("[::1]:6386", 200),
            ("[::ffff:127.0.0.1]", 200),
            ("LocalHost:6386", 200),
            ("a.localhost", 200),
            ("smithy:6386", 200),
            ("conductor.example", 200),
            ("evil.example:6386", 403),
            ("127.0.0.1.evil.example", 403),
            ("localhost.evil.example", 403),
            ("192.0.2.66", 403),
            ("10.0.2.2:6386", 403),
            ("", 403),
            ("a b", 403),
        ] {
            assert_eq!(status(&names, "/v1/nodes", &[("host", host)], ""), expected, "{host}");
        }
        assert_eq!(status(&Names::any(), "/v1/nodes", &[("host", "evil.example")], ""), 200);
        assert_eq!(status(&names, "/v1/nodes", &[], ""), 200);
    }

    #[test]
    fn n16_a_page_of_another_site_asks_nothing() {
        for names in [Names::of_host(None, None), Names::any()] {
            for (origin, expected) in [
                ("http://127.0.0.1:6386", 200),
                ("http://evil.example", 403),
                ("http://127.0.0.1:8080", 403),
                ("http://127.0.0.1", 403),
                ("null", 403),
                ("", 403),
            ] {
                let headers = [("host", "127.0.0.1:6386"), ("origin", origin)];
                assert_eq!(status(&names, "/v1/nodes", &headers, ""), expected, "{origin}");
            }
        }
    }

    #[test]
    fn n16_bodies_count_as_json_alone() {
        let (console, page) = ("/farrier/v1/nodes/n1/console", "/page/sign-in");
        for (path, kind, expected) in [
            ("/v1/nodes", Some("application/json"), 200),
            ("/v1/nodes", Some("Application/JSON; charset=utf-8"), 200),
            ("/v1/nodes", Some("application/json-patch+json"), 200),
            ("/v1/nodes", Some("text/plain"), 415),
            ("/v1/nodes", Some("application/x-www-form-urlencoded"), 415),
            ("/v1/nodes", Some("multipart/form-data; boundary=x"), 415),
            ("/v1/nodes", Some("text/plain; application/json"), 415),
            ("/v1/nodes", Some("application/octet-stream"), 415),
            ("/v1/nodes", None, 415),
            (console, Some("application/octet-stream"), 200),
            (console, Some("text/plain"), 415),
            (page, Some("application/x-www-form-urlencoded"), 200),
            (page, Some("Application/X-WWW-Form-Urlencoded; charset=utf-8"), 200),
            (page, Some("multipart/form-data; boundary=x"), 415),
            (page, Some("text/plain"), 415),
            (page, Some("application/json"), 415),
            (page, None, 415),
            ("/pages/sign-in", Some("application/x-www-form-urlencoded"), 415),
        ] {
            let headers: Vec<_> = kind.iter().map(|kind| ("content-type", *kind)).collect();
            assert_eq!(status(&Names::any(), path, &headers, "{}"), expected, "{path} {kind:?}");
            assert_eq!(status(&Names::any(), path, &headers, ""), 200, "no body has no type");
        }
    }
}
