//! BMCs that speak Redfish, each the only one at its address.

mod media;
mod resources;
mod served;
mod sessions;
mod withheld;

pub use served::{IMAGE_SHA256, Served};
pub use withheld::Withheld;

use crate::fault::Kind;
use crate::http::{Answer, Asked, json};
use crate::journal::{Side, Who};
use crate::machine::{Machine, Override};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use sessions::{Proven, Sessions};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where everything begins.
const ROOT: &str = "/redfish/v1";

/// The BMC of a machine.
#[derive(Debug)]
pub struct Bmc {
    machine: Arc<Machine>,
    sessions: Mutex<Sessions>,
    withheld: Arc<Withheld>,
}

impl Bmc {
    /// That of a machine.
    pub fn new(machine: Arc<Machine>, withheld: Arc<Withheld>) -> Self {
        Self { machine, sessions: Mutex::default(), withheld }
    }

    /// Its machine.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request; late, or never, where a fault has it so.
    pub async fn answer(&self, asked: Asked) -> Answer {
        if let Some(answer) = served::answer(&asked) {
            return answer;
        }
        if let Some(left) = self.machine.troubles_bmc(Kind::Hangs) {
            tokio::time::sleep(left).await;
        }
        if self.machine.troubles_bmc(Kind::Unavailable).is_some() {
            return out_of_service();
        }
        let (proven, answer) = self.let_in(&asked);
        let is_read = matches!(asked.method, Method::GET | Method::HEAD);
        if !is_read {
            let by = Who { peer: asked.peer, user: proven, program: asked.program() };
            let act = format!("{} {}{}", asked.method, asked.path, told(&asked));
            self.machine.note(Side::Bmc, Some(by.clone()), act, answer.status().as_str());
            if !asked.path.starts_with(sessions::COLLECTION) {
                self.withheld.wait(self.machine.identity.number, &by).await;
            }
        }
        answer
    }

    /// Who it is that asks, and the answer.
    fn let_in(&self, asked: &Asked) -> (Option<String>, Answer) {
        let path = asked.path.trim_end_matches('/');
        if path == sessions::COLLECTION && asked.method == Method::POST {
            return (None, self.begin_session(asked));
        }
        if path == ROOT && asked.method == Method::GET {
            return (None, self.resource(path));
        }
        match self.proven(asked) {
            Proven::Not => (
                None,
                refusal(StatusCode::UNAUTHORIZED, "Base.1.8.AccessDenied", "log in, or begin a session"),
            ),
            Proven::As(who) => (Some(who), self.obey(asked, path)),
        }
    }

    fn obey(&self, asked: &Asked, path: &str) -> Answer {
        let machine = &self.machine;
        match asked.method {
            Method::GET | Method::HEAD => self.resource(path),
            Method::DELETE if path.starts_with(sessions::COLLECTION) => self.end_session(path),
            Method::PATCH if path == machine.vendor.system() => self.change_boot(&asked.json()),
            Method::POST if path == resources::reset_action(machine.vendor) => self.reset(&asked.json()),
            Method::POST => self.media_action(path, &asked.json()),
            _ => refusal(StatusCode::METHOD_NOT_ALLOWED, "Base.1.8.OperationNotAllowed", "not here"),
        }
    }

    /// Carries out an order, unless it is of a kind that a fault has it forget.
    fn carry_out(&self, forgets: Kind, order: impl FnOnce(&Arc<Machine>)) -> Answer {
        if !self.machine.strike_bmc(forgets) {
            order(&self.machine);
        }
        done()
    }
}

/// What of an order is worth to be written down.
fn told(asked: &Asked) -> String {
    let body = asked.json();
    let boot = &body["Boot"];
    let words = [&body["ResetType"], &boot["BootSourceOverrideTarget"], &boot["BootSourceOverrideEnabled"]];
    words.into_iter().filter_map(Value::as_str).map(|word| format!(" {word}")).collect()
}

fn out_of_service() -> Answer {
    let mut answer = refusal(
        StatusCode::SERVICE_UNAVAILABLE,
        "Base.1.8.ServiceTemporarilyUnavailable",
        "the service is temporarily unavailable; try again later",
    );
    answer.headers_mut().insert(hyper::header::RETRY_AFTER, hyper::header::HeaderValue::from_static("1"));
    answer
}

/// A refusal with a message.
fn refusal(status: StatusCode, identifier: &str, message: &str) -> Answer {
    let detail = json!({"MessageId": identifier, "Message": message});
    let body = json!({"error": {"code": identifier, "message": message, "@Message.ExtendedInfo": [detail]}});
    json(status, &body)
}

/// The answer to an order that was carried out.
fn done() -> Answer {
    json(StatusCode::OK, &json!({}))
}

/// Changes an override as a request says.
fn change(now: &mut Override, boot: &Value) {
    use crate::machine::Holds;
    if let Some(target) = boot["BootSourceOverrideTarget"].as_str() {
        target.clone_into(&mut now.target);
    }
    match boot["BootSourceOverrideEnabled"].as_str() {
        Some("Once") => now.holds = Holds::Once,
        Some("Continuous") => now.holds = Holds::Continuous,
        Some("Disabled") => now.holds = Holds::Disabled,
        _ => {}
    }
    if let Some(url) = boot.get("HttpBootUri") {
        now.http_url = url.as_str().filter(|url| !url.is_empty()).map(str::to_owned);
    }
}
