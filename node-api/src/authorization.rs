//! Access to the routes for operators. An [`Authorization`] identifies the user of a request; [`authorized`] puts it before
//! a router, and lets readers look and administrators act. What agents call has none: the state of the node and the
//! agent token protect it (conductor contract 8.1).

use crate::wire::reply::Refusal;
use crate::wire::request_id;
use crate::wire::version::negotiate;
use async_trait::async_trait;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use farrier_engine::request_context::on_behalf_of;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Paths with versions only: every client may request them.
const PUBLIC: [&str; 3] = ["/", "/v1", "/v1/"];

/// The rights of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Look: GET and HEAD.
    Reader,
    /// Everything.
    Admin,
}

impl Role {
    /// Whether this role may use the method.
    pub fn allows(self, method: &Method) -> bool {
        self == Self::Admin || [Method::GET, Method::HEAD].contains(method)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Reader => "reader",
            Self::Admin => "admin",
        })
    }
}

/// A word that is no role.
#[derive(Debug, thiserror::Error)]
#[error("the role {0:?} is not known; use admin or reader")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        match text {
            "admin" => Ok(Self::Admin),
            "reader" => Ok(Self::Reader),
            other => Err(UnknownRole(other.to_owned())),
        }
    }
}

/// Who asks. Handlers find it among the extensions of their request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Name in the log.
    pub name: String,
    /// What this one may do.
    pub role: Role,
}

/// Whether a user may read consoles and their addresses. Without authentication every user may.
pub(crate) fn sees_consoles(identity: Option<&Identity>) -> bool {
    identity.is_none_or(|identity| identity.role == Role::Admin)
}

/// The reason for a refusal. Its text goes to the client, so it has no credentials.
#[derive(Debug, Clone)]
pub enum Denial {
    /// The credentials of the request are unknown: 401.
    Unauthenticated {
        /// What is wrong with it.
        reason: String,
        /// Values of `WWW-Authenticate`: what could be shown instead.
        challenges: Vec<HeaderValue>,
    },
    /// Known, and may not do this: 403.
    Forbidden {
        /// What is missing.
        reason: String,
    },
    /// There were too many attempts: 429.
    Throttled {
        /// The time until the next attempt; clients get whole seconds.
        retry_after: Duration,
    },
    /// It cannot be found out now: 503.
    Unavailable {
        /// Why.
        reason: String,
    },
}

impl IntoResponse for Denial {
    fn into_response(self) -> Response {
        match self {
            Self::Unauthenticated { reason, challenges } => {
                let mut response = Refusal::new(StatusCode::UNAUTHORIZED, reason).into_response();
                for challenge in challenges {
                    response.headers_mut().append(WWW_AUTHENTICATE, challenge);
                }
                response
            }
            Self::Forbidden { reason } => Refusal::new(StatusCode::FORBIDDEN, reason).into_response(),
            Self::Throttled { retry_after } => {
                let seconds = retry_after.as_secs().max(1);
                let text = format!("too many attempts with other credentials; wait {seconds} s");
                let mut response = Refusal::new(StatusCode::TOO_MANY_REQUESTS, text).into_response();
                response.headers_mut().insert(RETRY_AFTER, seconds.into());
                response
            }
            Self::Unavailable { reason } => {
                Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason).into_response()
            }
        }
    }
}

/// Identifies the user.
#[async_trait]
pub trait Authorization: Send + Sync + 'static {
    /// Who sent a request with this head. Nothing of its body was read yet.
    ///
    /// # Errors
    ///
    /// [`Denial`].
    async fn identify(&self, request: &Parts) -> Result<Identity, Denial>;
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
) -> Result<Response, Denial> {
    if PUBLIC.contains(&request.uri().path()) && Role::Reader.allows(request.method()) {
        return Ok(next.run(request).await);
    }
    let (mut parts, body) = request.into_parts();
    let identity = authorization.identify(&parts).await?;
    let Identity { name, role } = &identity;
    if !role.allows(&parts.method) {
        let reason = format!("{name} has the role {role}, which may only look; {} needs admin", parts.method);
        return Err(Denial::Forbidden { reason });
    }
    if *role == Role::Admin && !Role::Reader.allows(&parts.method) {
        tracing::info!(by = name, method = %parts.method, path = parts.uri.path(), "order");
    }
    let name = name.clone();
    parts.extensions.insert(identity);
    Ok(on_behalf_of(&name, next.run(Request::from_parts(parts, body))).await)
}
