//! The codes of requests that are refused before they reach the conductor's records.

use axum::http::StatusCode;
use farrier_conductor::model::ErrorCode;
use farrier_protocol::error_codes;

pub use farrier_protocol::error_code::HEADER as ERROR_CODE_HEADER;

error_codes! {
    /// Errors of requests over HTTP, by their status.
    REQUEST_ERRORS:
    INVALID_REQUEST = 1, "The request is not valid: its path, its query or its body.",
        "Correct what the text names.";
    NOT_AUTHENTICATED = 2, "The request has no credentials, or wrong ones.",
        "Set FARRIER_TOKEN, or FARRIER_USERNAME and FARRIER_PASSWORD.";
    NOT_ALLOWED = 3, "The role of the user does not allow the request.", "Use a user with the role admin.";
    NO_RESOURCE = 4, "The path or the object in it does not exist.", "Check the path, and list the objects.";
    WRONG_METHOD = 5, "The path does not support the method.", "Use a method of the reference.";
    OTHER_VERSION = 6, "The API version does not have what the request needs.",
        "Set a later version in X-OpenStack-Ironic-API-Version.";
    CONFLICT = 7, "The state of the object does not allow the request now.", "Retry later.";
    TOO_LARGE = 8, "The body of the request is too large.", "Send less, for example a smaller config drive.";
    TOO_MANY = 9, "The client sent too many requests or wrong passwords.", "Wait, then retry.";
    SERVER_ERROR = 10, "The conductor failed during the request.", "See the log of the conductor.";
    UNAVAILABLE = 11, "The conductor or a service behind it cannot answer now.", "Retry later.";
    NO_ROOM = 12, "The disk of the conductor is full.", "Free space on the host of the conductor.";
    FOREIGN_REQUEST = 13, "The request comes from the page of another site, or has an unknown name in `Host`.",
        "Use an address of the conductor, or give its name with `--admin-url`.";
}

/// The code of a refusal that has no more precise one.
pub(crate) fn of_status(status: StatusCode) -> &'static ErrorCode {
    match status {
        StatusCode::UNAUTHORIZED => NOT_AUTHENTICATED,
        StatusCode::FORBIDDEN => NOT_ALLOWED,
        StatusCode::NOT_FOUND => NO_RESOURCE,
        StatusCode::METHOD_NOT_ALLOWED => WRONG_METHOD,
        StatusCode::NOT_ACCEPTABLE => OTHER_VERSION,
        StatusCode::CONFLICT => CONFLICT,
        StatusCode::PAYLOAD_TOO_LARGE => TOO_LARGE,
        StatusCode::TOO_MANY_REQUESTS => TOO_MANY,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE => UNAVAILABLE,
        StatusCode::INSUFFICIENT_STORAGE => NO_ROOM,
        status if status.is_server_error() => SERVER_ERROR,
        _ => INVALID_REQUEST,
    }
}
