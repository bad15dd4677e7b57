//! How a user proves to be one (section 9.3): by a session, which is renewed when the BMC has forgotten it, or with each
//! request where the BMC begins none.
//!
//! A refusal of the password [counts when it came again](crate::client::refusals). That a session could not be begun counts for a
//! while alone, and only for as long as the BMC takes the password with each request.

use super::bmc::{Bmc, ROOT};
use super::connection::{AuthType, Login};
use super::error::RedfishError;
use super::exchange::{Ask, Proof, Reply, Wants};
use crate::client::rate_limit::Permit;
use crate::client::refusals::{May, Pauses, Refusals};
use crate::client::secret::Secret;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::time::Instant;

/// How often the end of a session is asked for.
const FAREWELLS: u32 = 2;

/// What is known of a user's standing at a BMC.
#[derive(Debug, Default)]
pub(in crate::redfish) struct Standing {
    session: Option<Session>,
    /// Why each request has the password now.
    without: Option<Without>,
    /// Whether the BMC has refused a password with a request, while it has sessions.
    refuses_basic: bool,
    refusals: Refusals,
}

#[derive(Debug, Clone)]
struct Session {
    token: Secret,
    /// Its path, by which it is ended.
    path: Option<String>,
}

/// No session could be begun.
#[derive(Debug)]
struct Without {
    /// Until when that counts.
    until: Instant,
    /// What was wrong, where the BMC has sessions.
    failure: Option<RedfishError>,
}

impl Bmc {
    /// Refuses in the BMC's place where it has refused the same before, for as long as that counts.
    ///
    /// # Errors
    ///
    /// [`RedfishError::Credentials`].
    pub(in crate::redfish) fn check_standing(&self) -> Result<(), RedfishError> {
        match (self.standing().refusals.may(), &self.login) {
            (May::Rest | May::BeTriedAt(_), Some(login)) => Err(self.credentials_error(login, false)),
            _ => Ok(()),
        }
    }

    /// From when on the password may be tried again, where the refusal does not count yet.
    pub(in crate::redfish) fn tries_password_at(&self) -> Option<Instant> {
        match self.standing().refusals.may() {
            May::BeTriedAt(at) => Some(at),
            May::BeTried => Some(Instant::now()),
            May::Rest => None,
        }
    }

    /// What requests prove to be entitled by; a session is begun where there is none.
    ///
    /// # Errors
    ///
    /// [`RedfishError`] of beginning a session.
    pub(in crate::redfish) async fn proof(&self, permit: &mut Permit<'_>) -> Result<Proof, RedfishError> {
        let Some(login) = &self.login else { return Ok(Proof::Nothing) };
        {
            let standing = self.standing();
            let is_without = standing.without.as_ref().is_some_and(|without| Instant::now() < without.until);
            if login.auth_type == AuthType::Basic || is_without {
                return Ok(basic(login));
            }
            if let Some(session) = &standing.session {
                return Ok(Proof::Token(session.token.clone()));
            }
        }
        self.begin_session(permit, login).await
    }

    async fn begin_session(&self, permit: &mut Permit<'_>, login: &Login) -> Result<Proof, RedfishError> {
        let root = self.root_with(permit).await?;
        let path = root.link("/Links/Sessions").or(root.link("/SessionService")).map(str::to_owned);
        let Some(path) = path else { return self.without_sessions(login, "it names none") };
        let path = if root.link("/Links/Sessions").is_some() { path } else { format!("{path}/Sessions") };
        let body = json!({"UserName": login.user, "Password": login.password.expose()});
        // What proves a session is in the headers.
        let ask = Ask { body: Some(&body), wants: Wants::Bytes, ..Ask::new(Method::POST, &path) };
        let reply = self.send(permit, &ask, &Proof::Nothing).await?;
        match (reply.refusal(), reply.token()) {
            (None, Some(token)) => {
                let session = Session { token: token.clone(), path: reply.location() };
                let mut standing = self.standing();
                (standing.session, standing.without) = (Some(session), None);
                standing.refusals.worked();
                Ok(Proof::Token(token))
            }
            (None, None) => self.no_session_now(login, &ask, "a session that has no token".to_owned()),
            (Some(refusal), _) if refusal.is_out_of_service() => Err(self.refused(&ask, refusal)),
            (Some(refusal), _) if refusal.is_absence() => self.without_sessions(login, &refusal.to_string()),
            (Some(refusal), _)
                if refusal.status() == StatusCode::UNAUTHORIZED && !refusal.is_for_want_of_sessions() =>
            {
                Err(self.refuse(login))
            }
            (Some(refusal), _) => self.no_session_now(login, &ask, refusal.to_string()),
        }
    }

    /// The BMC has no sessions.
    fn without_sessions(&self, login: &Login, why: &str) -> Result<Proof, RedfishError> {
        if login.auth_type == AuthType::Session {
            return Err(RedfishError::Lacks {
                bmc: self.label(),
                what: format!("no session for user {:?} ({})", login.user, login.password.taken_out_of(why)),
                advice: "set redfish_auth_type to auto, or to basic",
            });
        }
        tracing::debug!(bmc = self.label(), "each request has the password: no sessions ({why})");
        Ok(self.by_password(login, None))
    }

    /// The BMC has sessions, and none for this user now.
    fn no_session_now(&self, login: &Login, ask: &Ask<'_>, why: String) -> Result<Proof, RedfishError> {
        let failure = RedfishError::NoSession {
            bmc: self.label(),
            user: login.user.clone(),
            request: ask.line(),
            why: login.password.taken_out_of(&why),
        };
        if login.auth_type == AuthType::Session || self.standing().refuses_basic {
            return Err(failure);
        }
        tracing::debug!("{failure}; each request has the password");
        Ok(self.by_password(login, Some(failure)))
    }

    fn by_password(&self, login: &Login, failure: Option<RedfishError>) -> Proof {
        let until = Instant::now() + self.settings.credentials_pause;
        self.standing().without = Some(Without { until, failure });
        basic(login)
    }

    /// Ends a session if the response means that the BMC has dropped it; true if so. Some BMCs say so with the
    /// status of one that lacks rights; an existing session would be one too many.
    pub(in crate::redfish) async fn is_expired(
        &self,
        permit: &mut Permit<'_>,
        proof: &Proof,
        reply: &Reply,
    ) -> bool {
        let is_denied = matches!(reply.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let has_expired = is_denied && matches!(proof, Proof::Token(_));
        if has_expired {
            let session = self.standing().session.take();
            self.end(permit, session, 1).await;
        }
        has_expired
    }

    /// Records whether the password of a request was rejected. The root needs no password.
    ///
    /// # Errors
    ///
    /// [`RedfishError::Credentials`]; what kept the BMC from beginning a session, where it takes nothing else.
    pub(in crate::redfish) fn check_credentials(
        &self,
        ask: &Ask<'_>,
        proof: &Proof,
        reply: &Reply,
    ) -> Result<(), RedfishError> {
        let (Some(login), Proof::Basic(_)) = (&self.login, proof) else { return Ok(()) };
        if reply.status.is_success() && ask.path != ROOT {
            let mut standing = self.standing();
            standing.refuses_basic = false;
            standing.refusals.worked();
        }
        if reply.status != StatusCode::UNAUTHORIZED {
            return Ok(());
        }
        let without = self.standing().without.take();
        match without.and_then(|without| without.failure) {
            Some(failure) => {
                self.standing().refuses_basic = true;
                Err(failure)
            }
            None => Err(self.refuse(login)),
        }
    }

    fn refuse(&self, login: &Login) -> RedfishError {
        let pauses = Pauses { again: self.settings.refusal_pause, rest: self.settings.credentials_pause };
        self.standing().refusals.refused(pauses);
        self.credentials_error(login, true)
    }

    fn credentials_error(&self, login: &Login, is_asked: bool) -> RedfishError {
        let pause = self.settings.credentials_pause;
        RedfishError::Credentials { bmc: self.label(), user: login.user.clone(), pause, is_asked }
    }

    /// Ends the session, where there is one: BMCs keep few at a time.
    pub(in crate::redfish) async fn end_session(&self) {
        let session = self.standing().session.take();
        if session.is_some() {
            let mut permit = self.rate_limiter.acquire().await;
            self.end(&mut permit, session, FAREWELLS).await;
        }
    }

    /// A session that is known no more has ended.
    async fn end(&self, permit: &mut Permit<'_>, session: Option<Session>, attempts: u32) {
        let Some(Session { token, path: Some(path) }) = session else { return };
        let ask = Ask::new(Method::DELETE, &path);
        let proof = Proof::Token(token);
        for _ in 0..attempts {
            match self.send(permit, &ask, &proof).await.map(|reply| reply.refusal()) {
                Ok(None) => return,
                Ok(Some(refusal)) => tracing::debug!("{}", self.refused(&ask, refusal)),
                Err(error) => tracing::debug!("{error}"),
            }
        }
    }
}

/// User and password as the header has them.
fn basic(login: &Login) -> Proof {
    let pair = format!("{}:{}", login.user, login.password.expose());
    Proof::Basic(Secret::new(format!("Basic {}", BASE64_STANDARD.encode(pair))))
}
