//! Replies and error bodies of both interfaces (conductor contract 8.1).

use crate::wire::codes::{self, ERROR_CODE_HEADER};
use crate::wire::json_patch::PatchError;
use axum::Json;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use farrier_conductor::Error as TaskError;
use farrier_conductor::inventory::BadReport;
use farrier_conductor::model::{ErrorCode, mask_value, masked_text};
use farrier_engine::Error;
use farrier_engine::store::StoreError;
use farrier_protocol::json::{self, JsonError, Limits};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt;

/// Seconds after which a client may come again whom nobody has time for now.
const RETRY_SECONDS: u16 = 2;

/// A refused request.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    text: String,
    code: &'static ErrorCode,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), code: codes::of_status(status) }
    }

    pub(crate) fn bad_request(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// Why a verb is refused: in a state that does not allow it, trying again does not help.
    pub(crate) fn of_verb(error: Error) -> Self {
        match error {
            Error::Task(TaskError::InvalidState { .. }) => {
                Self { code: error.code(), ..Self::bad_request(error.to_string()) }
            }
            error => error.into(),
        }
    }

    /// What is asked for is there in later versions only.
    pub(crate) fn needs(version: u16, what: &str) -> Self {
        let text = format!("{what} needs API version 1.{version}; ask for that one or a later one");
        Self::new(StatusCode::NOT_ACCEPTABLE, text)
    }

    /// What a path names can be the identity of nothing of this kind.
    pub(crate) fn no_uuid(kind: &str, id: &str) -> Self {
        Self::bad_request(format!("{id:?} must be the UUID of a {kind}"))
    }

    pub(crate) fn wrong_method() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "this resource does not know that method")
    }

    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "no such resource; see /v1 for what there is")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl IntoResponse for Refusal {
    /// The fault is JSON inside JSON text, as every client of this interface expects it; that of a version that there
    /// is not has keys of its own.
    fn into_response(self) -> Response {
        let faultcode = if self.status.is_server_error() { "Server" } else { "Client" };
        let text = masked_text(&self.text);
        let fault = match self.status {
            StatusCode::NOT_ACCEPTABLE => {
                json!({"code": 406, "title": "Not Acceptable", "description": text})
            }
            _ => json!({"faultcode": faultcode, "faultstring": text, "debuginfo": null}),
        };
        let header = [(ERROR_CODE_HEADER, self.code.to_string())];
        let body = Json(json!({"error_message": fault.to_string()}));
        let mut response = (self.status, header, body).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, RETRY_SECONDS.into());
        }
        response
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (text, code) = (error.to_string(), error.code());
        let text = match error {
            // Clients recognise these by Ironic's sentences.
            Error::PoweredOn { .. } | Error::Store(StoreError::Taken { .. }) => sentence(&text),
            _ => text,
        };
        Self { status, text, code }
    }
}

impl From<BadReport> for Refusal {
    fn from(error: BadReport) -> Self {
        Error::from(error).into()
    }
}

impl From<TaskError> for Refusal {
    fn from(error: TaskError) -> Self {
        Error::from(error).into()
    }
}

/// The text with a capital letter at its beginning.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

impl From<PatchError> for Refusal {
    fn from(error: PatchError) -> Self {
        Self::bad_request(error.to_string())
    }
}

/// An answer with every secret in it masked.
pub(crate) fn masked(answer: impl Serialize) -> Json<Value> {
    let mut value = json!(answer);
    mask_value(&mut value);
    Json(value)
}

/// What the values of a request's body may be.
pub(crate) const BODY: Limits = Limits::USUAL.within(16 << 20);

/// Reads a JSON body, whatever its declared type.
pub(crate) fn read_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    Ok(json::read(body, &BODY)?)
}

impl From<JsonError> for Refusal {
    fn from(error: JsonError) -> Self {
        let what_to_send = match error {
            JsonError::Unusable(_) => "; send a JSON object",
            _ => "",
        };
        Self::bad_request(format!("the request body cannot be used: {error}{what_to_send}"))
    }
}

/// The answer to an unknown path.
pub(crate) async fn fallback() -> Refusal {
    Refusal::not_found()
}

/// The answer to a known path asked with the wrong method.
pub(crate) async fn wrong_method() -> Refusal {
    Refusal::wrong_method()
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_engine::records::Forbidden;

    #[test]
    fn a_refused_request_has_the_code_of_its_error() {
        let node = || "n1".to_owned();
        let maintenance = Forbidden::Maintenance { node: node(), reason: String::new() };
        let invalid_state =
            || TaskError::InvalidState { node: node(), state: "active".to_owned(), allowed: String::new() };
        let away = || StoreError::Unreachable { location: "db".to_owned(), reason: String::new() };
        for (refusal, status, code) in [
            (Refusal::from(Error::NodeNotFound(node())), 404, "FAR-0101"),
            (Refusal::from(Error::Forbidden(maintenance)), 400, "FAR-0106"),
            (Refusal::from(Error::Task(invalid_state())), 409, "FAR-0201"),
            (Refusal::of_verb(Error::Task(invalid_state())), 400, "FAR-0201"),
            (Refusal::from(Error::Store(away())), 503, "FAR-0611"),
            (Refusal::needs(90, "firmware"), 406, "FAR-0006"),
            (Refusal::not_found(), 404, "FAR-0004"),
            (Refusal::wrong_method(), 405, "FAR-0005"),
            (Refusal::bad_request("no"), 400, "FAR-0001"),
        ] {
            let response = refusal.into_response();
            assert_eq!(response.status(), status, "{code}");
            assert_eq!(response.headers()[ERROR_CODE_HEADER], code);
            assert_eq!(response.headers().contains_key(RETRY_AFTER), status == 503, "{code}");
        }
    }
}
