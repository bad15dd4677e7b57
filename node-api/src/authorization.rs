//! Authorization before the routes for operators: [`authorized`] puts it before a router, and lets readers look and
//! administrators act. What agents call has none: the state of the node and the agent token protect it (conductor
//! contract 8.1).

use crate::wire::reply::Refusal;
use crate::wire::request_id;
use crate::wire::version::negotiate;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use farrier_access::{Authorization, Denial, Identity, Role};
use farrier_engine::request_context::on_behalf_of;
use std::sync::Arc;

/// Paths with versions only: every client may request them.
const PUBLIC: [&str; 3] = ["/", "/v1", "/v1/"];

/// The response to a denied request, in the error format of the node API.
pub fn denied(denial: Denial) -> Response {
    match denial {
        Denial::Unauthenticated { reason, challenges } => {
            let mut response = Refusal::new(StatusCode::UNAUTHORIZED, reason).into_response();
            for challenge in challenges {
                response.headers_mut().append(WWW_AUTHENTICATE, challenge);
            }
            response
        }
        Denial::Forbidden { reason } => Refusal::new(StatusCode::FORBIDDEN, reason).into_response(),
        Denial::Throttled { retry_after } => {
            let seconds = retry_after.as_secs().max(1);
            let text = format!("too many attempts with other credentials; wait {seconds} s");
            let mut response = Refusal::new(StatusCode::TOO_MANY_REQUESTS, text).into_response();
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
            response
        }
        Denial::Unavailable { reason } => {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason).into_response()
        }
    }
}

/// The router behind an authorization. Everything in it is asked for, unknown paths too, but the description of the
/// interface at its root; readers may only look.
pub fn authorized(router: Router, authorization: Arc<dyn Authorization>) -> Router {
    // Denials tell versions and the request's identity too, as all answers do.
    router
        .layer(middleware::from_fn_with_state(authorization, admit))
        .layer(middleware::from_fn(negotiate))
        .layer(middleware::from_fn(request_id::identify))
}

async fn admit(
    State(authorization): State<Arc<dyn Authorization>>,
    request: Request,
    next: Next,
) -> Result<Response, Response> {
    if PUBLIC.contains(&request.uri().path()) && Role::Reader.allows(request.method()) {
        return Ok(next.run(request).await);
    }
    let (mut parts, body) = request.into_parts();
    let identity = authorization.identify(&parts).await.map_err(denied)?;
    let Identity { name, role } = &identity;
    if !role.allows(&parts.method) {
        let reason = format!("{name} has the role {role}, which may only look; {} needs admin", parts.method);
        return Err(denied(Denial::Forbidden { reason }));
    }
    if *role == Role::Admin && !Role::Reader.allows(&parts.method) {
        tracing::info!(by = name, method = %parts.method, path = parts.uri.path(), "order");
    }
    let name = name.clone();
    parts.extensions.insert(identity);
    Ok(on_behalf_of(&name, next.run(Request::from_parts(parts, body))).await)
}
