//! Who may ask, and by what.

use super::{Inner, Manner, PASSWORD, Seen, USER, json_answer, refusal};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use std::collections::HashMap;

const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// Tokens, and how many requests each is good for.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    open: HashMap<String, u32>,
    begun: u32,
}

impl Inner {
    /// Sessions that are open.
    pub fn open_sessions(&self) -> usize {
        self.sessions.open.len()
    }

    /// Forgets all sessions.
    pub fn forget_sessions(&mut self) {
        self.sessions.open.clear();
    }

    /// The answer of the session service; nothing where that lets the request pass.
    pub(super) fn session(&mut self, seen: &Seen) -> Option<Response> {
        if seen.path == SESSIONS && seen.method == Method::POST {
            return Some(self.begin_session(seen));
        }
        if seen.path.trim_end_matches('/') == "/redfish/v1" || self.is_let_in(seen) {
            return self.end_session(seen);
        }
        Some(match self.has(Manner::ExpiredIsForbidden) {
            true => refusal(StatusCode::FORBIDDEN, "Base.1.0.NoValidSession", "no session"),
            false => refusal(StatusCode::UNAUTHORIZED, "Base.1.0.AccessDenied", "who are you"),
        })
    }

    fn begin_session(&mut self, seen: &Seen) -> Response {
        if self.has(Manner::NoSessions) {
            return refusal(StatusCode::METHOD_NOT_ALLOWED, "Base.1.0.ActionNotSupported", "no sessions");
        }
        if seen.body["UserName"] != USER || seen.body["Password"] != PASSWORD {
            return refusal(StatusCode::UNAUTHORIZED, "Base.1.0.AccessDenied", "wrong");
        }
        self.sessions.begun += 1;
        let number = self.sessions.begun;
        let token = format!("token-{number}");
        let uses = if self.has(Manner::ForgetfulSessions) { 3 } else { u32::MAX };
        self.sessions.open.insert(token.clone(), uses);
        let path = format!("{SESSIONS}/{number}");
        let mut answer = json_answer(StatusCode::CREATED, &json!({"@odata.id": path}));
        answer.headers_mut().insert("x-auth-token", token.parse().unwrap());
        // As behind a proxy: it does not know by which name it was asked.
        answer.headers_mut().insert("location", format!("https://bmc.internal{path}").parse().unwrap());
        answer
    }

    fn is_let_in(&mut self, seen: &Seen) -> bool {
        let text =
            |name: &str| seen.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        if let Some(uses) = text("x-auth-token").and_then(|token| self.sessions.open.get_mut(&token)) {
            *uses = uses.saturating_sub(1);
            return *uses > 0;
        }
        if self.has(Manner::NoBasic) {
            return false;
        }
        let basic = format!("Basic {}", BASE64_STANDARD.encode(format!("{USER}:{PASSWORD}")));
        text("authorization") == Some(basic)
    }

    fn end_session(&mut self, seen: &Seen) -> Option<Response> {
        let number = seen.path.strip_prefix(SESSIONS)?.strip_prefix('/')?;
        self.sessions.open.remove(&format!("token-{number}"));
        Some(json_answer(StatusCode::OK, &json!({})))
    }
}
