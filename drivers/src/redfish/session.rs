//! How a user proves to be one (section 9.3): by a session, which is renewed when the BMC has forgotten it, or with each
//! request where the BMC has no sessions.
//!
//! A password that was refused is not tried again for a while: many BMCs lock a user out after a few attempts, and
//! whoever looks after the power of machines asks again and again.

use super::bmc::Bmc;
use super::connection::{AuthType, Login};
use super::error::RedfishError;
use super::exchange::{Ask, Proof, Reply};
use crate::bmc::pace::Flight;
use crate::secret::Secret;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::time::Instant;

/// What is known of a user's standing at a BMC.
#[derive(Debug, Default)]
pub(super) struct Standing {
    session: Option<Session>,
    /// The BMC has no sessions.
    is_basic: bool,
    /// Until when the password counts as refused.
    refused_until: Option<Instant>,
}

#[derive(Debug, Clone)]
struct Session {
    token: Secret,
    /// Its path, by which it is ended.
    path: Option<String>,
}

impl Bmc {
    /// Refuses in the BMC's place where it has refused the same before.
    ///
    /// # Errors
    ///
    /// [`RedfishError::Credentials`].
    pub(super) fn check_standing(&self) -> Result<(), RedfishError> {
        match (self.standing().refused_until, &self.login) {
            (Some(until), Some(login)) if Instant::now() < until => Err(self.credentials_error(login)),
            _ => Ok(()),
        }
    }

    /// What requests prove to be entitled by; a session is begun where there is none.
    ///
    /// # Errors
    ///
    /// [`RedfishError`] of beginning a session.
    pub(super) async fn proof(&self, flight: &mut Flight<'_>) -> Result<Proof, RedfishError> {
        let Some(login) = &self.login else { return Ok(Proof::Nothing) };
        {
            let standing = self.standing();
            if login.auth_type == AuthType::Basic || standing.is_basic {
                return Ok(basic(login));
            }
            if let Some(session) = &standing.session {
                return Ok(Proof::Token(session.token.clone()));
            }
        }
        self.begin_session(flight, login).await
    }

    async fn begin_session(&self, flight: &mut Flight<'_>, login: &Login) -> Result<Proof, RedfishError> {
        let root = self.root_behind(flight).await?;
        let path = root.link("/Links/Sessions").or(root.link("/SessionService")).map(str::to_owned);
        let Some(path) = path else { return self.without_sessions(login, "it names none".to_owned()) };
        let path = if root.link("/Links/Sessions").is_some() { path } else { format!("{path}/Sessions") };
        let body = json!({"UserName": login.user, "Password": login.password.expose()});
        let ask = Ask { body: Some(&body), ..Ask::new(Method::POST, &path) };
        let reply = self.send(flight, &ask, &Proof::Nothing).await?;
        match (reply.refusal(), reply.token()) {
            (None, Some(token)) => {
                let path = reply.location();
                self.standing().session = Some(Session { token: token.clone(), path });
                Ok(Proof::Token(token))
            }
            (None, None) => self.without_sessions(login, "its session has no token".to_owned()),
            (Some(refusal), _) if refusal.status() == StatusCode::UNAUTHORIZED => Err(self.refuse(login)),
            (Some(refusal), _) if refusal.is_out_of_service() => Err(self.refused(&ask, refusal)),
            (Some(refusal), _) => self.without_sessions(login, refusal.to_string()),
        }
    }

    /// The BMC has no sessions, or none for this user, or no more.
    fn without_sessions(&self, login: &Login, why: String) -> Result<Proof, RedfishError> {
        if login.auth_type == AuthType::Session {
            return Err(RedfishError::Lacks {
                bmc: self.label(),
                what: format!("no session for user {:?} ({})", login.user, login.password.taken_out_of(&why)),
                advice: "set redfish_auth_type to auto, or to basic",
            });
        }
        tracing::debug!(bmc = self.label(), "each request has the password: no sessions ({why})");
        self.standing().is_basic = true;
        Ok(basic(login))
    }

    /// Whether an answer means that the session is known no more. Some say so with the status of one that lacks rights.
    pub(super) fn is_expired(&self, proof: &Proof, reply: &Reply) -> bool {
        let is_denied = matches!(reply.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let has_expired = is_denied && matches!(proof, Proof::Token(_));
        if has_expired {
            self.standing().session = None;
        }
        has_expired
    }

    /// Whether an answer means that the password is refused, which is remembered.
    ///
    /// # Errors
    ///
    /// [`RedfishError::Credentials`].
    pub(super) fn check_credentials(&self, proof: &Proof, reply: &Reply) -> Result<(), RedfishError> {
        match (&self.login, proof) {
            (Some(login), Proof::Basic(_)) if reply.status == StatusCode::UNAUTHORIZED => {
                Err(self.refuse(login))
            }
            _ => Ok(()),
        }
    }

    fn refuse(&self, login: &Login) -> RedfishError {
        self.standing().refused_until = Some(Instant::now() + self.settings.credentials_pause);
        self.credentials_error(login)
    }

    fn credentials_error(&self, login: &Login) -> RedfishError {
        let pause = self.settings.credentials_pause;
        RedfishError::Credentials { bmc: self.label(), user: login.user.clone(), pause }
    }

    /// Ends the session, where there is one: BMCs keep few at a time.
    pub(super) async fn end_session(&self) {
        let Some(Session { token, path: Some(path) }) = self.standing().session.take() else { return };
        let ask = Ask::new(Method::DELETE, &path);
        let mut flight = self.gate.pass().await;
        if let Err(error) = self.send(&mut flight, &ask, &Proof::Token(token)).await {
            tracing::debug!("{error}");
        }
    }
}

/// User and password as the header has them.
fn basic(login: &Login) -> Proof {
    let pair = format!("{}:{}", login.user, login.password.expose());
    Proof::Basic(Secret::new(format!("Basic {}", BASE64_STANDARD.encode(pair))))
}
