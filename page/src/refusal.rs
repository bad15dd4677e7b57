//! The answer to a request that is refused.

use crate::{frame, html};
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use farrier_access::Denial;
use farrier_conductor::Error as TaskError;
use farrier_conductor::interfaces::InterfaceError;
use farrier_engine::Error;
use farrier_engine::store::StoreError;
use maud::html;
use std::time::Duration;

/// A refused request.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    title: &'static str,
    text: String,
    back: Option<String>,
    retry_after: Option<Duration>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, title: &'static str, text: impl Into<String>) -> Self {
        Self { status, title, text: text.into(), back: None, retry_after: None }
    }

    pub(crate) fn bad_request(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "The request cannot be used", text)
    }

    /// The same, with a way back to a page.
    pub(crate) fn back_to(self, path: impl Into<String>) -> Self {
        Self { back: Some(path.into()), ..self }
    }

    /// The same, about an order that was not given.
    pub(crate) fn of_order(self) -> Self {
        Self { title: "Nothing was ordered", ..self }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let back = self.back.as_deref().unwrap_or("/page/");
        let content = html! {
            p.failure role="alert" { (html::text(&self.text)) }
            p { a href=(back) { @if self.back.is_some() { "Back to the node" } @else { "To the list of nodes" } } }
        };
        let mut response = (self.status, frame::page(self.title, None, &content)).into_response();
        if let Some(retry_after) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, retry_after.as_secs().max(1).into());
        }
        response
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let (status, title) = match &error {
            Error::NodeNotFound(_) | Error::Store(StoreError::Gone(_)) => {
                (StatusCode::NOT_FOUND, "There is no such node")
            }
            Error::Store(
                StoreError::Full { .. } | StoreError::Busy { .. } | StoreError::Unreachable { .. },
            )
            | Error::Stopping(_) => (StatusCode::SERVICE_UNAVAILABLE, "The conductor cannot do this now"),
            Error::Task(
                TaskError::Invalid { .. }
                | TaskError::Unresolved(_)
                | TaskError::Interface(
                    InterfaceError::DriverInfo { .. }
                    | InterfaceError::Invalid { .. }
                    | InterfaceError::Unsupported { .. },
                ),
            ) => (StatusCode::BAD_REQUEST, "The request cannot be used"),
            Error::Store(StoreError::Failed { .. }) | Error::Logs(_) | Error::Task(TaskError::Host(_)) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "The conductor failed")
            }
            _ => (StatusCode::CONFLICT, "The node cannot have this now"),
        };
        Self::new(status, title, error.to_string())
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Error::from(error).into()
    }
}

impl From<Denial> for Refusal {
    fn from(denial: Denial) -> Self {
        match denial {
            Denial::Unauthenticated { reason, .. } => {
                Self::new(StatusCode::UNAUTHORIZED, "Sign in first", reason)
            }
            Denial::Forbidden { reason } => Self::new(StatusCode::FORBIDDEN, "You may not do this", reason),
            Denial::Throttled { retry_after } => {
                let seconds = retry_after.as_secs().max(1);
                let text = format!("There were too many attempts with other credentials; wait {seconds} s.");
                let refusal = Self::new(StatusCode::TOO_MANY_REQUESTS, "Too many attempts", text);
                Self { retry_after: Some(retry_after), ..refusal }
            }
            Denial::Unavailable { reason } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "The conductor cannot do this now", reason)
            }
        }
    }
}

/// The answer to an unknown path.
pub(crate) async fn no_such_page() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "There is no such page", "The address may be of another version.")
}

/// The answer to a known path asked with the wrong method.
pub(crate) async fn wrong_method() -> Refusal {
    let text = "This address does not know that method.";
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "The request cannot be used", text)
}
