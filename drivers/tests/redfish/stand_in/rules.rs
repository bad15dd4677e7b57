//! Answers to requests of a kind that are other ones than they should be.

use super::{Inner, Seen, json_answer};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde_json::Value;

/// What is answered to requests of a kind.
#[derive(Debug, Clone)]
pub struct Rule {
    pub method: Method,
    /// The end of their path.
    pub path: &'static str,
    /// How often.
    pub times: u32,
    /// Whether the BMC does what it was asked for.
    pub acts: bool,
    pub status: u16,
    pub body: Value,
}

impl Rule {
    fn is_for(&self, seen: &Seen) -> bool {
        let path = seen.path.trim_end_matches('/');
        self.times > 0 && self.method == seen.method && path.ends_with(self.path)
    }
}

impl Inner {
    /// The answer that a rule has for a request.
    pub(super) fn by_rule(&mut self, seen: &Seen) -> Option<Response> {
        let rule = self.rules.iter_mut().find(|rule| rule.is_for(seen))?;
        rule.times -= 1;
        let (acts, answer) = (rule.acts, json_answer(StatusCode::from_u16(rule.status).unwrap(), &rule.body));
        if acts {
            self.answer(seen);
        }
        Some(answer)
    }
}
