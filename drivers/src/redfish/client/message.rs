//! What a BMC says when it refuses something (Redfish specification DSP0266, error responses).

use reqwest::StatusCode;
use serde_json::Value;
use std::fmt;

/// Longest text of a BMC in an error, in characters.
const LONGEST: usize = 400;

/// Ends of identifiers of messages that mean: not now. What a BMC answers while the machine or itself begins.
const NOT_NOW: &[&str] = &[
    // iDRAC is busy with its lifecycle controller.
    "SYS518",
    // Lenovo, HPE: the machine tests itself.
    "UnableToModifyDuringSystemPOST",
    // iLO, likewise.
    "InvalidOperationForSystemState",
    "ResourceInUse",
    "ServiceTemporarilyUnavailable",
    "ServiceInUnknownState",
];

/// Ends of identifiers of messages that mean: a change counts from the next start of the machine on.
const FROM_NEXT_START: &[&str] = &["ResetRequired", "RebootRequired", "RestartRequired"];

/// Ends of identifiers of messages that mean: too many sessions are open, whatever the status.
const NO_MORE_SESSIONS: &[&str] = &["SessionLimitExceeded", "CreateLimitReachedForResource", "RAC0218"];

/// The messages of an answer, be they about an error or not.
fn messages(body: &Value) -> impl Iterator<Item = &Value> {
    const INFO: &str = "@Message.ExtendedInfo";
    let lists = [&body["error"][INFO], &body[INFO]].into_iter().filter_map(Value::as_array);
    lists.flatten().take(16)
}

/// Whether the answer to a change says that it counts from the next start of the machine on.
pub(in crate::redfish) fn is_for_next_start(body: &Value) -> bool {
    let ends = |identifier: &str| FROM_NEXT_START.iter().any(|end| identifier.ends_with(end));
    messages(body).any(|one| one["MessageId"].as_str().is_some_and(ends))
}

/// The BMC will not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    status: StatusCode,
    /// Identifiers of its messages.
    identifiers: Vec<String>,
    /// Its messages, and the properties that they are about.
    text: String,
}

impl Refusal {
    /// Reads the body of an answer.
    pub(in crate::redfish) fn read(status: StatusCode, body: &Value) -> Self {
        let error = &body["error"];
        let details: Vec<&Value> = messages(body).collect();
        let text = |value: &Value| value.as_str().map(printable);
        let mut identifiers: Vec<_> = details.iter().filter_map(|one| text(&one["MessageId"])).collect();
        identifiers.extend(text(&error["code"]));
        let mut said: Vec<_> = details.iter().filter_map(|one| text(&one["Message"])).collect();
        for one in &details {
            let properties = one["RelatedProperties"].as_array().into_iter().flatten();
            said.extend(properties.filter_map(text));
        }
        if said.is_empty() {
            said.extend(text(&error["message"]));
        }
        Self { status, identifiers, text: said.join(" ").chars().take(LONGEST).collect() }
    }

    /// Status of the answer.
    pub(in crate::redfish) fn status(&self) -> StatusCode {
        self.status
    }

    /// Whether one of its messages has an identifier that ends like this.
    pub(in crate::redfish) fn is(&self, end: &str) -> bool {
        self.identifiers.iter().any(|identifier| identifier.ends_with(end))
    }

    /// Whether it names a property or parameter.
    pub(in crate::redfish) fn names(&self, property: &str) -> bool {
        self.text.contains(property)
    }

    /// Whether the BMC can do nothing at all now.
    pub(in crate::redfish) fn is_out_of_service(&self) -> bool {
        matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS)
    }

    /// Whether it will not since too many sessions are open.
    pub(in crate::redfish) fn is_for_want_of_sessions(&self) -> bool {
        NO_MORE_SESSIONS.iter().any(|identifier| self.is(identifier))
    }

    /// Whether the BMC has nothing of this kind.
    pub(in crate::redfish) fn is_absence(&self) -> bool {
        let absent = [
            StatusCode::NOT_FOUND,
            StatusCode::METHOD_NOT_ALLOWED,
            StatusCode::GONE,
            StatusCode::NOT_IMPLEMENTED,
        ];
        absent.contains(&self.status)
    }

    /// Whether it will, later.
    pub(in crate::redfish) fn is_for_now(&self) -> bool {
        NOT_NOW.iter().any(|identifier| self.is(identifier))
    }

    /// Whether asking for the same again soon is no use. A conflict ends when the machine has got somewhere.
    pub(in crate::redfish) fn is_final(&self) -> bool {
        !self.is_for_now()
            && self.status.is_client_error()
            && !matches!(self.status, StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS)
    }

    /// The same, with a change to its text.
    pub(in crate::redfish) fn with_text(self, change: impl Fn(&str) -> String) -> Self {
        Self { text: change(&self.text), ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.status)?;
        if let Some(identifier) = self.identifiers.first() {
            write!(formatter, " ({identifier})")?;
        }
        match self.text.is_empty() {
            true => Ok(()),
            false => write!(formatter, ": {}", self.text),
        }
    }
}

/// A text of a BMC, as it may stand in a log.
fn printable(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn refusals_are_read_and_reported_in_one_line() {
        let body = json!({"error": {"code": "Base.1.8.GeneralError", "message": "general", "@Message.ExtendedInfo": [
            {"MessageId": "Base.1.8.ActionParameterMissing", "Message": "needs\nTransferMethod",
             "RelatedProperties": ["#/TransferProtocolType"]},
            7,
        ]}});
        let refusal = Refusal::read(StatusCode::BAD_REQUEST, &body);
        assert!(
            refusal.is("ActionParameterMissing") && refusal.is("GeneralError") && !refusal.is("Missing1")
        );
        assert!(refusal.names("TransferProtocolType") && !refusal.names("UserName"));
        assert_eq!(
            refusal.to_string(),
            "400 Bad Request (Base.1.8.ActionParameterMissing): needsTransferMethod #/TransferProtocolType"
        );
        for body in [json!(null), json!([]), json!({"error": "no"}), json!({"error": {"code": 5}})] {
            assert_eq!(Refusal::read(StatusCode::NOT_FOUND, &body).to_string(), "404 Not Found", "{body}");
        }
        let long = json!({"error": {"message": "x".repeat(1 << 20)}});
        assert!(Refusal::read(StatusCode::BAD_REQUEST, &long).to_string().len() < 500);
    }

    #[test]
    fn some_refusals_are_for_now() {
        for (status, identifier, for_now, last) in [
            (400, "IDRAC.2.4.SYS518", true, false),
            (400, "ExtendedError.1.0.UnableToModifyDuringSystemPOST", true, false),
            (400, "Base.1.8.ActionParameterNotSupported", false, true),
            (409, "Base.1.8.ActionParameterValueConflict", false, false),
            (500, "Base.1.8.InternalError", false, false),
        ] {
            let body = json!({"error": {"code": identifier}});
            let refusal = Refusal::read(StatusCode::from_u16(status).unwrap(), &body);
            assert_eq!((refusal.is_for_now(), refusal.is_final()), (for_now, last), "{identifier}");
        }
    }
}
