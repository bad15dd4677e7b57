//! The identity of a request, by which an operator finds it in the conductor's log.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;
use uuid::Uuid;

/// Clients read the one, and proxies of OpenStack log the other.
const HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-openstack-request-id"), HeaderName::from_static("openstack-request-id")];

/// A request that has its identity already.
#[derive(Debug, Clone, Copy)]
struct HasIdentity;

/// Gives every request an id, and returns it in every response.
pub(crate) async fn identify(mut request: Request, next: Next) -> Response {
    if request.extensions_mut().insert(HasIdentity).is_some() {
        return next.run(request).await;
    }
    let id = format!("req-{}", Uuid::new_v4());
    let span = tracing::info_span!("request", %id, method = %request.method(), path = request.uri().path());
    let mut response = next.run(request).instrument(span).await;
    let value = HeaderValue::from_str(&id).expect("letters, digits and dashes");
    for header in HEADERS {
        response.headers_mut().insert(header, value.clone());
    }
    response
}
