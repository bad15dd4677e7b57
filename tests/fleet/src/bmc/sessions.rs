//! Who may ask, and by what.

use super::{Bmc, done, refusal};
use crate::fault::Kind;
use crate::file::LOGIN;
use crate::http::{Answer, Asked, json};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::StatusCode;
use hyper::header::{HeaderValue, LOCATION};
use serde_json::json;
use std::collections::HashMap;
use uuid::Uuid;

/// The path of the service of sessions.
pub(super) const SERVICE: &str = "/redfish/v1/SessionService";
/// The path of the sessions.
pub(super) const COLLECTION: &str = "/redfish/v1/SessionService/Sessions";

/// Sessions that are open, by their tokens, with their numbers.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    open: HashMap<String, u64>,
    begun: u64,
}

/// Who somebody has proven to be.
pub(super) enum Proven {
    /// Nobody.
    Not,
    /// This one.
    As(String),
}

impl Bmc {
    pub(super) fn begin_session(&self, asked: &Asked) -> Answer {
        let body = asked.json();
        let is_known = body["UserName"] == LOGIN.0 && body["Password"] == LOGIN.1;
        if !is_known || self.forgets_for_ever() {
            return refusal(StatusCode::UNAUTHORIZED, "Base.1.8.AccessDenied", "user or password is wrong");
        }
        let token = Uuid::new_v4().to_string();
        let mut sessions = self.sessions();
        sessions.begun += 1;
        let number = sessions.begun;
        sessions.open.insert(token.clone(), number);
        drop(sessions);
        let path = format!("{COLLECTION}/{number}");
        let mut answer = json(StatusCode::CREATED, &json!({"@odata.id": path, "UserName": LOGIN.0}));
        for (name, value) in [(LOCATION.as_str(), path), ("x-auth-token", token)] {
            if let (Ok(name), Ok(value)) =
                (hyper::header::HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                answer.headers_mut().insert(name, value);
            }
        }
        answer
    }

    pub(super) fn end_session(&self, path: &str) -> Answer {
        let number = path.rsplit('/').next().and_then(|number| number.parse::<u64>().ok());
        self.sessions().open.retain(|_, open| Some(*open) != number);
        done()
    }

    /// Who asks: the user, or that user's session, by its number.
    pub(super) fn proven(&self, asked: &Asked) -> Proven {
        if self.machine().strike_bmc(Kind::SessionLost) {
            self.sessions().open.clear();
        }
        if let Some(token) = asked.header("x-auth-token") {
            return match self.sessions().open.get(token) {
                Some(number) => Proven::As(format!("session {number}")),
                None => Proven::Not,
            };
        }
        let basic = format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{}", LOGIN.0, LOGIN.1)));
        match asked.header("authorization") == Some(&basic) && !self.forgets_for_ever() {
            true => Proven::As(format!("user {}", LOGIN.0)),
            false => Proven::Not,
        }
    }

    /// Whether it lets nobody in any more.
    fn forgets_for_ever(&self) -> bool {
        let fault = self.machine().armed(crate::fault::Class::Bmc);
        let lost = fault.filter(|fault| fault.kind == Kind::SessionLost && !fault.recoverable);
        lost.is_some() && self.machine().strike_bmc(Kind::SessionLost)
    }
}
