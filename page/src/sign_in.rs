//! Signing in and out.

use crate::access::Access;
use crate::form::Form;
use crate::frame;
use crate::refusal::Refusal;
use crate::session::{BrowserId, Credentials};
use axum::RequestExt;
use axum::extract::{Extension, RawQuery, Request, State};
use axum::http::header::{RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use farrier_access::Denial;
use maud::html;
use std::sync::Arc;

/// Where one goes who has signed in.
const START: &str = "/page/";

/// Browsers ask their users by a window of their own for schemes that they know, and not for this one.
const CHALLENGE: HeaderValue = HeaderValue::from_static("FarrierPage realm=\"Baremetal page\"");

/// A link in a page of another site has the browser send no cookie; one in this page does.
const CROSS_SITE: &str = "cross-site";

/// The form, with what there is to say about it.
struct SignIn<'a> {
    status: StatusCode,
    message: Option<&'a str>,
    user: &'a str,
    then: &'a str,
}

impl SignIn<'_> {
    fn response(&self, access: &Access, browser: &BrowserId) -> Response {
        let content = html! {
            @if let Some(message) = self.message { p.failure role="alert" { (message) } }
            form.sign-in method="post" action="/page/sign-in" {
                input type="hidden" name="form_token" value=(access.form_tokens.of(browser));
                input type="hidden" name="then" value=(self.then);
                fieldset {
                    legend { "User" }
                    label for="user" { "Name" }
                    input #user name="user" value=(self.user) autocomplete="username" maxlength="255";
                    label for="password" { "Password" }
                    input #password name="password" type="password" autocomplete="current-password" maxlength="1024";
                }
                fieldset {
                    legend { "or token" }
                    label for="token" { "Token" }
                    input #token name="token" type="password" autocomplete="off" maxlength="8192";
                }
                button { "Sign in" }
            }
        };
        let mut response = (self.status, frame::page("Sign in", None, &content)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, CHALLENGE);
        }
        response
    }
}

/// `GET /page`
pub(crate) async fn to_the_list() -> Redirect {
    Redirect::to(START)
}

/// `GET /page/sign-in`
pub(crate) async fn show(
    State(access): State<Arc<Access>>,
    Extension(browser): Extension<BrowserId>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = Form::of(query.unwrap_or_default().as_bytes());
    let message = (query.text("out") == "yes").then_some("You have signed out.");
    SignIn { status: StatusCode::OK, message, user: "", then: START }.response(&access, &browser)
}

/// The form instead of what a request asks for. What it would have ordered was not ordered, and it is said so.
pub(crate) fn instead(access: &Access, browser: &BrowserId, request: &Parts) -> Response {
    let path = request.uri.path();
    let is_order = request.method != Method::GET && request.method != Method::HEAD;
    if !is_order && comes_from_elsewhere(&request.headers, access) {
        return once_more(request);
    }
    let then = match is_order {
        true => path.split("/orders/").next().unwrap_or(START),
        false => request.uri.path_and_query().map_or(START, |all| all.as_str()),
    };
    let message = match is_order {
        true => "You are not signed in any more. Nothing was ordered: sign in, and give the order again.",
        false => "Sign in to see this page. A login ends after an hour without a request.",
    };
    SignIn { status: StatusCode::UNAUTHORIZED, message: Some(message), user: "", then }
        .response(access, browser)
}

/// Whether a link on another site has led here, so that the browser has held its cookie back.
fn comes_from_elsewhere(headers: &HeaderMap, access: &Access) -> bool {
    let is_cross_site = headers.get("sec-fetch-site").is_some_and(|site| site == CROSS_SITE);
    is_cross_site && access.browser(headers).is_none()
}

/// A page that leads to the same address, for which the browser sends its cookie. It sets none, which would replace that.
fn once_more(request: &Parts) -> Response {
    let address = request.uri.path_and_query().map_or(START, |all| all.as_str());
    let again = [("refresh", format!("0; url={address}"))];
    let content = html! { p { a href=(address) { "Continue" } } };
    let keep = [("cache-control", "no-store, private")];
    (keep, again, frame::page("Continue", None, &content)).into_response()
}

/// `POST /page/sign-in`
pub(crate) async fn sign_in(
    State(access): State<Arc<Access>>,
    Extension(browser): Extension<BrowserId>,
    request: Request,
) -> Result<Response, Refusal> {
    let (mut head, body) = request.into_parts();
    let form: Form = Request::from_parts(head.clone(), body).extract().await?;
    let then = own_path(form.text("then"));
    let again = |status: StatusCode, message: &str| {
        SignIn { status, message: Some(message), user: form.text("user"), then }.response(&access, &browser)
    };
    if !access.form_tokens.is_of(&browser, form.text("form_token")) {
        let message =
            "This form was out of date, or the browser keeps no cookies for this site; sign in again.";
        return Ok(again(StatusCode::FORBIDDEN, message));
    }
    let credentials = match (form.text("token"), form.text("user"), form.verbatim("password")) {
        ("", "", _) => {
            return Ok(again(StatusCode::BAD_REQUEST, "Give a name with its password, or a token."));
        }
        ("", user, password) => Credentials::password(user, password),
        (token, _, _) => Credentials::token(token),
    };
    let unknown = "The name, the password or the token is wrong.";
    let Some(credentials) = credentials else { return Ok(again(StatusCode::UNAUTHORIZED, unknown)) };
    credentials.present(&mut head.headers);
    Ok(match access.authorization.identify(&head).await {
        Ok(identity) => {
            tracing::info!(by = identity.name, "signed in to the page");
            access.sessions.end(&browser);
            let browser = access.sessions.begin(credentials, access.conductor.now());
            ([(SET_COOKIE, access.cookie.set(&browser))], Redirect::to(then)).into_response()
        }
        Err(Denial::Unauthenticated { .. }) => again(StatusCode::UNAUTHORIZED, unknown),
        Err(Denial::Forbidden { reason }) => again(StatusCode::FORBIDDEN, &reason),
        Err(Denial::Unavailable { reason }) => again(StatusCode::SERVICE_UNAVAILABLE, &reason),
        Err(Denial::Throttled { retry_after }) => {
            let seconds = retry_after.as_secs().max(1);
            let message = format!("There were too many attempts; wait {seconds} s.");
            let mut response = again(StatusCode::TOO_MANY_REQUESTS, &message);
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
            response
        }
    })
}

/// A path of this page: a form may not lead to another site.
fn own_path(path: &str) -> &str {
    let is_own = path.starts_with(START) && !path.contains(|c: char| c.is_control() || c == '\\');
    if is_own { path } else { START }
}

/// `POST /page/sign-out`
pub(crate) async fn sign_out(
    State(access): State<Arc<Access>>,
    Extension(browser): Extension<BrowserId>,
) -> Response {
    access.sessions.end(&browser);
    let cookie = access.cookie.set(&BrowserId::new());
    ([(SET_COOKIE, cookie)], Redirect::to("/page/sign-in?out=yes")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_leads_to_paths_of_this_page_alone() {
        for (path, expected) in [
            ("/page/nodes/n1", "/page/nodes/n1"),
            ("/page/?state=active", "/page/?state=active"),
            ("", START),
            ("/v1/nodes", START),
            ("//evil.example/page/", START),
            ("https://evil.example/page/", START),
            ("/page/\\evil.example", START),
            ("/page/\r\nSet-Cookie: a=b", START),
        ] {
            assert_eq!(own_path(path), expected, "{path}");
        }
    }
}
