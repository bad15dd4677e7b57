//! Lets a request in: its user is known, has the role that its method needs, and its form is one of this page.

pub(crate) mod browser;

use crate::access::Access;
use crate::form::Form;
use crate::refusal::Refusal;
use crate::session::{BrowserId, Visitor};
use crate::sign_in;
use axum::RequestExt;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use farrier_access::{Denial, Role};
use farrier_engine::request_context::on_behalf_of;
use std::sync::Arc;

/// The only path that readers post to.
const SIGN_OUT: &str = "/page/sign-out";

/// Before every route but that of signing in. Handlers find a [`Visitor`] and a [`Form`] among the extensions of their
/// request.
pub(crate) async fn admit(
    State(access): State<Arc<Access>>,
    Extension(browser): Extension<BrowserId>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let visitor = match access.visitor(&browser, &parts).await {
        Ok(visitor) => visitor,
        Err(Denial::Unauthenticated { .. }) => return sign_in::instead(&access, &browser, &parts),
        Err(denial) => return Refusal::from(denial).into_response(),
    };
    match checked(&access, &browser, &visitor, parts, body).await {
        Ok(mut request) => {
            let name = visitor.identity.name.clone();
            request.extensions_mut().insert(visitor);
            on_behalf_of(&name, next.run(request)).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// The request, with its form. The role comes first: a reader is not asked to fill in a form once more.
async fn checked(
    access: &Access,
    browser: &BrowserId,
    visitor: &Visitor,
    parts: Parts,
    body: Body,
) -> Result<Request, Refusal> {
    let identity = &visitor.identity;
    let needs_admin = parts.uri.path() != SIGN_OUT && !Role::Reader.allows(&parts.method);
    if needs_admin && identity.role != Role::Admin {
        let reason = format!("{} has the role {}, which may only look.", identity.name, identity.role);
        return Err(Denial::Forbidden { reason }.into());
    }
    if parts.method != Method::POST {
        return Ok(Request::from_parts(parts, body));
    }
    let form: Form = Request::from_parts(parts.clone(), body).extract().await?;
    if !access.form_tokens.is_of(browser, form.text("form_token")) {
        return Err(stale());
    }
    if needs_admin {
        tracing::info!(by = identity.name, method = %parts.method, path = parts.uri.path(), "order by the page");
    }
    let mut request = Request::from_parts(parts, Body::empty());
    request.extensions_mut().insert(form);
    Ok(request)
}

/// The answer to a form that is not of this page, or of an earlier run of the conductor.
fn stale() -> Refusal {
    let text = "The form is not of this page, or the conductor has started again since it was loaded. Load the page \
        again, and send the form once more.";
    Refusal::new(StatusCode::FORBIDDEN, "The form is out of date", text).of_order()
}
