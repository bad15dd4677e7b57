//! A BMC: reads resources, changes them, and asks for actions.

use super::connection::{Connection, Login};
use super::error::RedfishError;
use super::exchange::{Ask, Line, Proof, Reply, Wants};
use super::message::Refusal;
use super::resource::Resource;
use super::session::Standing;
use super::settings::RedfishSettings;
use crate::client::rate_limit::{Permit, RateLimiter};
use crate::redfish::quirks::Quirk;
use farrier_conductor::task::confirm_lease;
use rand::Rng;
use reqwest::header::ETAG;
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Where everything begins (DSP0266).
pub(in crate::redfish) const ROOT: &str = "/redfish/v1/";

/// Longest pause before a BMC is asked again that is busy, in pauses.
const MOST_PAUSES: u32 = 6;

/// A BMC, as one user sees it.
#[derive(Debug)]
pub(in crate::redfish) struct Bmc {
    line: Line,
    pub(in crate::redfish) login: Option<Login>,
    pub(in crate::redfish) rate_limiter: Arc<RateLimiter>,
    pub(in crate::redfish) settings: Arc<RedfishSettings>,
    standing: Mutex<Standing>,
    root: Mutex<Option<Arc<Resource>>>,
    only_system: Mutex<Option<String>>,
}

/// How a BMC took a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::redfish) enum Taken {
    /// It applies now, as far as the BMC reports.
    Now,
    /// It counts from the next start of the machine on.
    AtNextStart,
}

/// What came of a change.
#[derive(Debug)]
pub(in crate::redfish) enum Changed {
    /// It is as wanted, or will be from the next start of the machine on.
    Done,
    /// It is not, and reads like this.
    Not(Resource),
}

impl Bmc {
    /// A BMC without requests so far.
    pub(in crate::redfish) fn new(
        connection: &Connection,
        http: Client,
        rate_limiter: Arc<RateLimiter>,
        settings: Arc<RedfishSettings>,
    ) -> Self {
        let line = Line { http, address: connection.address.clone(), timeout: settings.request_timeout };
        let login = connection.login.clone();
        let (standing, root, only_system) = Default::default();
        Self { line, login, rate_limiter, settings, standing, root, only_system }
    }

    /// The BMC, for logs and errors.
    pub(in crate::redfish) fn label(&self) -> String {
        self.line.label()
    }

    /// Whether this quirk is looked for.
    pub(in crate::redfish) fn minds(&self, quirk: Quirk) -> bool {
        self.settings.quirks.contains(quirk)
    }

    pub(in crate::redfish) fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path of its only machine, where that is known.
    pub(in crate::redfish) fn only_system(&self) -> Option<String> {
        self.only_system.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers the path of its only machine.
    pub(in crate::redfish) fn note_only_system(&self, path: &str) {
        *self.only_system.lock().unwrap_or_else(PoisonError::into_inner) = Some(path.to_owned());
    }

    /// Forgets the path of its only machine, where there is none any more.
    pub(in crate::redfish) fn forget_only_system(&self) {
        *self.only_system.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// What the BMC has, read once. A root without machines is not kept: one wrong answer would count for ever.
    ///
    /// # Errors
    ///
    /// [`RedfishError`].
    pub(in crate::redfish) async fn root(&self) -> Result<Arc<Resource>, RedfishError> {
        if let Some(root) = self.known_root() {
            return Ok(root);
        }
        let root = Arc::new(self.get(ROOT).await?);
        if root.link("/Systems").is_some() {
            *self.root.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&root));
        }
        Ok(root)
    }

    /// The same, with a permit that the caller has already.
    pub(in crate::redfish) async fn root_with(
        &self,
        permit: &mut Permit<'_>,
    ) -> Result<Arc<Resource>, RedfishError> {
        if let Some(root) = self.known_root() {
            return Ok(root);
        }
        let ask = Ask::new(Method::GET, ROOT);
        let reply = self.send(permit, &ask, &Proof::Nothing).await?;
        match reply.refusal() {
            Some(refusal) => Err(self.refused(&ask, refusal)),
            None => Ok(Arc::new(Resource::new(ROOT, None, reply.body))),
        }
    }

    fn known_root(&self) -> Option<Arc<Resource>> {
        self.root.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads a resource.
    ///
    /// # Errors
    ///
    /// [`RedfishError`].
    pub(in crate::redfish) async fn get(&self, path: &str) -> Result<Resource, RedfishError> {
        let ask = Ask { wants: Wants::Resource, ..Ask::new(Method::GET, path) };
        let reply = self.request(&ask).await?;
        let etag = reply.header(ETAG).map(str::to_owned);
        Ok(Resource::new(path, etag, reply.body))
    }

    /// Asks for an action, and waits until it is done.
    ///
    /// # Errors
    ///
    /// [`RedfishError`].
    pub(in crate::redfish) async fn post(
        &self,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(), RedfishError> {
        let ask = Ask { body, ..Ask::new(Method::POST, path) };
        let reply = self.request(&ask).await?;
        self.complete(&ask, reply).await.map(drop)
    }

    /// Asks for an action that answers something at once.
    ///
    /// # Errors
    ///
    /// [`RedfishError`].
    pub(in crate::redfish) async fn ask(&self, path: &str, body: &Value) -> Result<Value, RedfishError> {
        let ask = Ask { body: Some(body), ..Ask::new(Method::POST, path) };
        Ok(self.request(&ask).await?.body)
    }

    /// Asks for an action that answers with a file at once.
    ///
    /// # Errors
    ///
    /// [`RedfishError`].
    pub(in crate::redfish) async fn download(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<Vec<u8>, RedfishError> {
        let ask = Ask { body: Some(body), wants: Wants::Bytes, ..Ask::new(Method::POST, path) };
        Ok(self.request(&ask).await?.file)
    }

    /// Changes a resource, and waits until that is done. If another client changed it meanwhile, or the BMC compares
    /// ETags in its own way, the change is made anyway, because it is complete.
    ///
    /// # Errors
    ///
    /// [`RedfishError`].
    pub(in crate::redfish) async fn patch(&self, path: &str, body: &Value) -> Result<Taken, RedfishError> {
        let etag = self.get(path).await.ok().and_then(|resource| resource.etag().map(str::to_owned));
        let strong = etag.as_deref().and_then(|etag| etag.strip_prefix("W/"));
        let strong = strong.filter(|_| self.minds(Quirk::StrongEtags));
        let unconditional = self.minds(Quirk::WrongEtags).then_some(None);
        let first = [Some(etag.as_deref()), strong.map(Some), unconditional];
        let mut etags = first.into_iter().flatten().collect::<Vec<_>>();
        etags.dedup();
        let last = etags.len() - 1;
        for (index, etag) in etags.into_iter().enumerate() {
            let ask = Ask { body: Some(body), etag, ..Ask::new(Method::PATCH, path) };
            match self.request(&ask).await {
                Err(error) if index < last && has_status(&error, StatusCode::PRECONDITION_FAILED) => {}
                Err(error) => return Err(error),
                Ok(reply) => return self.complete(&ask, reply).await,
            }
        }
        Ok(Taken::Now)
    }

    /// Changes a resource and judges that by reading it again, also where the BMC has refused the change or has not answered.
    ///
    /// # Errors
    ///
    /// [`RedfishError`], where the resource is not as wanted.
    pub(in crate::redfish) async fn change(
        &self,
        path: &str,
        body: &Value,
        is_so: impl Fn(&Resource) -> bool,
    ) -> Result<Changed, RedfishError> {
        let taken = self.patch(path, body).await;
        if taken.as_ref().is_err_and(RedfishError::is_about_password) {
            return taken.map(|_| Changed::Done);
        }
        let now = self.get(path).await;
        if now.as_ref().is_ok_and(&is_so) {
            return Ok(Changed::Done);
        }
        let (taken, now) = (taken?, now?);
        if taken == Taken::AtNextStart || self.will_be(&now, is_so).await {
            tracing::info!(
                bmc = self.label(),
                path,
                "the change counts from the next start of the machine on"
            );
            return Ok(Changed::Done);
        }
        Ok(Changed::Not(now))
    }

    /// Whether what a resource is going to be, which stands in one of its own, is as wanted.
    async fn will_be(&self, now: &Resource, is_so: impl Fn(&Resource) -> bool) -> bool {
        let Some(path) = now.link("/@Redfish.Settings/SettingsObject") else { return false };
        self.get(path).await.is_ok_and(|pending| is_so(&pending))
    }

    /// Asks, and asks again where the BMC did not answer and may be asked, or will answer later.
    ///
    /// # Errors
    ///
    /// [`RedfishError`].
    pub(in crate::redfish) async fn request(&self, ask: &Ask<'_>) -> Result<Reply, RedfishError> {
        let mut attempt = 1;
        loop {
            let error = match self.attempt(ask).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            match self.asks_again_at(ask, &error, attempt) {
                Some(at) => tokio::time::sleep_until(at).await,
                None => return Err(error),
            }
            attempt += 1;
        }
    }

    /// From when on the same may be asked for once more, where it may.
    fn asks_again_at(&self, ask: &Ask<'_>, error: &RedfishError, attempt: u32) -> Option<Instant> {
        if error.is_about_password() {
            return self.tries_password_at();
        }
        let is_for_now = self.minds(Quirk::Busy) && error.refusal().is_some_and(Refusal::is_for_now);
        let may_be_asked = error.is_without_effect() || ask.method == Method::GET && !error.is_final();
        let is_allowed = attempt < self.settings.connection_attempts && (is_for_now || may_be_asked);
        let pause = match error {
            _ if is_for_now => self.busy_pause(attempt),
            RedfishError::NoSession { .. } => self.settings.refusal_pause,
            _ => Duration::ZERO,
        };
        is_allowed.then(|| Instant::now() + pause)
    }

    fn busy_pause(&self, attempt: u32) -> Duration {
        let pause = self.settings.busy_pause;
        pause.saturating_mul(attempt.min(MOST_PAUSES)).mul_f64(rand::rng().random_range(0.75..1.25))
    }

    async fn attempt(&self, ask: &Ask<'_>) -> Result<Reply, RedfishError> {
        let mut permit = self.rate_limiter.acquire().await;
        self.check_standing()?;
        let mut proof = self.proof(&mut permit).await?;
        let mut reply = self.send(&mut permit, ask, &proof).await?;
        if self.is_expired(&mut permit, &proof, &reply).await {
            proof = self.proof(&mut permit).await?;
            reply = self.send(&mut permit, ask, &proof).await?;
        }
        self.check_credentials(ask, &proof, &reply)?;
        match reply.refusal() {
            Some(refusal) => Err(self.refused(ask, refusal)),
            None => Ok(reply),
        }
    }

    /// Sends a request, with a permit. What changes something is sent under a lease that the store has confirmed now.
    pub(in crate::redfish) async fn send(
        &self,
        permit: &mut Permit<'_>,
        ask: &Ask<'_>,
        proof: &Proof,
    ) -> Result<Reply, RedfishError> {
        permit.ask().await;
        if ask.method != Method::GET {
            confirm_lease().await;
        }
        let reply = self.line.exchange(ask, proof).await;
        match &reply {
            Err(RedfishError::Unreachable { .. }) => permit.failed(None),
            Ok(reply) if reply.refusal().is_some_and(|refusal| refusal.is_out_of_service()) => {
                permit.failed(reply.retry_after());
            }
            Ok(_) | Err(_) => permit.answered(),
        }
        reply
    }

    /// The BMC refuses; its words may repeat what they must not.
    pub(in crate::redfish) fn refused(&self, ask: &Ask<'_>, refusal: Refusal) -> RedfishError {
        let refusal = match &self.login {
            Some(login) => refusal.with_text(|text| login.password.taken_out_of(text)),
            None => refusal,
        };
        RedfishError::Refused { bmc: self.label(), request: ask.line(), refusal }
    }
}

/// Whether a BMC has answered with this status.
pub(in crate::redfish) fn has_status(error: &RedfishError, status: StatusCode) -> bool {
    error.refusal().is_some_and(|refusal| refusal.status() == status)
}
