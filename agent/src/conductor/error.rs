//! Why a request to the conductor's API did not succeed.

use crate::network::http::{self, AnswerError, reason};
use reqwest::StatusCode;
use serde_json::Value;

/// Why a request did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// No server could be reached.
    #[error("{}: {advice}", self.finding())]
    Unreachable {
        /// Last URL that was tried.
        url: String,
        /// Cause in one phrase.
        reason: String,
        /// What to do.
        advice: &'static str,
    },
    /// The server answered with another status than the wanted one.
    #[error("{}: {}", self.finding(), self.advice())]
    Refused {
        /// URL of the request.
        url: String,
        /// Its status.
        status: StatusCode,
        /// Its fault text.
        text: String,
    },
    /// The answer is not what the contract says.
    #[error("{}: {}", self.finding(), self.advice())]
    Invalid {
        /// URL of the request.
        url: String,
        /// What was expected.
        expected: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// What to do about an answer that no conductor gives.
const NO_CONDUCTOR: &str = "is there a conductor behind this URL, or a proxy?";

/// What to do about a status.
fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            "agents have no account: let lookup and heartbeat pass without one, and compare the agent token"
        }
        StatusCode::NOT_FOUND => {
            "enrol this machine's addresses as ports of a node, and bring it to a state that expects an agent"
        }
        StatusCode::CONFLICT => "the node is locked by another task, which has to end first",
        status if status.is_server_error() => "see the conductor's log",
        status if status.is_client_error() => {
            "the conductor refuses what this agent says: see its log, and let it boot the machine again"
        }
        _ => NO_CONDUCTOR,
    }
}

impl ApiError {
    /// No server answers.
    pub fn unreachable(url: String, error: &reqwest::Error) -> Self {
        Self::Unreachable { url, reason: reason(error), advice: http::advice(error) }
    }

    /// The answer of `url` has another status than the wanted one.
    pub fn refused(url: String, status: StatusCode, body: &[u8]) -> Self {
        Self::Refused { url, status, text: fault_text(body) }
    }

    /// The answer of `url` cannot be read.
    pub fn unread(url: String, error: AnswerError) -> Self {
        match error {
            AnswerError::Broken(error) => Self::unreachable(url, &error),
            AnswerError::TooLong(_) => {
                Self::Invalid { url, expected: "conductor's answer", reason: error.to_string() }
            }
        }
    }

    /// What happened.
    pub fn finding(&self) -> String {
        match self {
            Self::Unreachable { url, reason, .. } => format!("{url} cannot be reached ({reason})"),
            Self::Refused { url, status, text } => format!("{url} answered {status} ({text})"),
            Self::Invalid { url, expected, reason } => {
                format!("{url} answered something that is not a {expected} ({reason})")
            }
        }
    }

    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Unreachable { advice, .. } => advice,
            Self::Refused { status, .. } => advice(*status),
            Self::Invalid { .. } => NO_CONDUCTOR,
        }
    }

    /// Whether the node was locked; a lookup then waits longer (section 2.3).
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { status, .. } if *status == StatusCode::CONFLICT)
    }

    /// Whether the server may answer otherwise in a moment.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => status.is_server_error(),
            Self::Invalid { .. } => false,
        }
    }
}

/// The fault text inside an error body of the API; the body itself when it has another form.
fn fault_text(body: &[u8]) -> String {
    let fault = http::json::<Value>(body).ok().and_then(|outer| {
        // Ironic puts the fault into a JSON text inside the JSON body.
        let inner = match &outer["error_message"] {
            Value::String(text) => http::json(text.as_bytes()).unwrap_or_default(),
            other => other.clone(),
        };
        Some(inner["faultstring"].as_str()?.to_owned())
    });
    // One line, and nothing that a console would obey.
    let text = fault.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_fault_text_is_found_in_every_form_of_body() {
        let inner = json!({"faultcode": "Client", "faultstring": "Node is locked"}).to_string();
        for (body, expected) in [
            (json!({"error_message": inner}).to_string(), "Node is locked"),
            (json!({"error_message": {"faultstring": "x"}}).to_string(), "x"),
            ("gateway down".to_owned(), "gateway down"),
            ("<html>\r\n\u{1b}[2J 502".to_owned(), "<html> [2J 502"),
            (String::new(), ""),
        ] {
            assert_eq!(fault_text(body.as_bytes()), expected);
        }
    }
}
