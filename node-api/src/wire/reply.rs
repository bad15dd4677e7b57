//! Replies and error bodies of both interfaces (conductor contract 8.1).

use crate::wire::json_patch::PatchError;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use farrier_conductor::Error as TaskError;
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::inventory::BadReport;
use farrier_conductor::model::{mask_value, masked_text};
use farrier_engine::Error;
use farrier_engine::records::Forbidden;
use farrier_engine::store::StoreError;
use farrier_protocol::json::{self, JsonError, Limits};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt;

/// A refused request.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    text: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    pub(crate) fn bad_request(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// Why a verb is refused: in a state that does not allow it, trying again does not help.
    pub(crate) fn of_verb(error: Error) -> Self {
        match error {
            Error::Task(TaskError::InvalidState { .. }) => Self::bad_request(error.to_string()),
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
        (self.status, Json(json!({"error_message": fault.to_string()}))).into_response()
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::NodeNotFound(_)
            | Error::PortNotFound(_)
            | Error::AllocationNotFound(_)
            | Error::ResourceNotFound { .. }
            | Error::LookupFailed
            | Error::Store(StoreError::Gone(_)) => StatusCode::NOT_FOUND,
            Error::InUse { .. }
            | Error::Store(StoreError::Held { .. } | StoreError::Overtaken(_) | StoreError::Taken { .. }) => {
                StatusCode::CONFLICT
            }
            Error::Forbidden(Forbidden::Protected { .. }) => StatusCode::FORBIDDEN,
            Error::Forbidden(_)
            | Error::PoweredOn { .. }
            | Error::NameTaken(_)
            | Error::Unserved { .. }
            | Error::LedElsewhere { .. } => StatusCode::BAD_REQUEST,
            Error::Stopping(_) => StatusCode::SERVICE_UNAVAILABLE,
            Error::Store(StoreError::Full { .. }) => StatusCode::INSUFFICIENT_STORAGE,
            Error::Logs(_) | Error::Store(StoreError::Failed { .. }) => StatusCode::INTERNAL_SERVER_ERROR,
            Error::Task(error) => status_of(error),
        };
        let text = error.to_string();
        Self::new(
            status,
            match error {
                // Clients recognise these by Ironic's sentences.
                Error::PoweredOn { .. } | Error::Store(StoreError::Taken { .. }) => sentence(&text),
                _ => text,
            },
        )
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

fn status_of(error: &TaskError) -> StatusCode {
    match error {
        TaskError::InvalidState { .. }
        | TaskError::OtherInstance(_)
        | TaskError::Interface(InterfaceError::InUse { .. }) => StatusCode::CONFLICT,
        TaskError::Heartbeat(_)
        | TaskError::Invalid { .. }
        | TaskError::Unresolved(_)
        | TaskError::Interface(
            InterfaceError::DriverInfo { .. }
            | InterfaceError::Invalid { .. }
            | InterfaceError::Unsupported { .. },
        ) => StatusCode::BAD_REQUEST,
        TaskError::StepFailed { .. }
        | TaskError::Hardware(_)
        | TaskError::Interface(InterfaceError::Driver(_) | InterfaceError::NotAsked(_))
        | TaskError::Agent(_)
        | TaskError::Host(_) => StatusCode::INTERNAL_SERVER_ERROR,
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
