//! Who asks services, with a token that is renewed before it expires, and once when a service knows it no more.
//!
//! One wrong answer decides nothing: what may be asked twice is asked again where a service is out of service, does not answer, or
//! answers nonsense; what is not there is missing twice; and a refusal of the credentials [counts when it came
//! again](crate::client::refusals).

use super::cloud::{Access, Cloud};
use super::error::OpenStackError;
use super::exchange::{Ask, Http, Reply};
use super::keystone::{Granted, Login};
use super::settings::OpenStackSettings;
use crate::client::refusals::{May, Pauses, Refusals};
use crate::client::secret::Secret;
use rand::Rng;
use reqwest::{Method, StatusCode, Url};
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

/// How often something is missing before that counts.
const MISSING: u32 = 2;

/// Longest pause that a service may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A request to Neutron: a path below its address, and a query.
#[derive(Debug, Clone)]
pub(super) struct Call<'a> {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Vec<(&'a str, &'a str)>,
    pub(super) body: Option<Value>,
}

/// Who asks the services of a cloud.
#[derive(Debug)]
pub(super) struct Session {
    cloud: Cloud,
    settings: OpenStackSettings,
    http: Http,
    standing: Mutex<Standing>,
    /// One renews the token at a time.
    renewal: Semaphore,
}

#[derive(Debug, Default)]
struct Standing {
    granted: Option<(Arc<Granted>, Instant)>,
    refusals: Refusals,
    /// What Keystone said when it refused the credentials the last time.
    reason: String,
}

impl Session {
    /// One that has no token yet.
    ///
    /// # Errors
    ///
    /// [`OpenStackError::CaFile`].
    pub(super) fn new(cloud: Cloud, settings: OpenStackSettings) -> Result<Self, OpenStackError> {
        let http = Http::new(&cloud.trust, &settings)?;
        Ok(Self { cloud, settings, http, standing: Mutex::default(), renewal: Semaphore::new(1) })
    }

    /// Asks Neutron for something, and once more with a new token where it knows the old one no more.
    ///
    /// # Errors
    ///
    /// [`OpenStackError`], also for what is refused.
    pub(super) async fn request(&self, call: &Call<'_>) -> Result<Reply, OpenStackError> {
        let login = match &self.cloud.access {
            Access::Open { network_endpoint } => {
                return self.send(call, network_endpoint, None).await.and_then(accepted);
            }
            Access::Keystone { login, .. } => login,
        };
        let granted = self.granted(login, None).await?;
        let reply = self.send(call, &self.endpoint(&granted)?, Some(&granted.token)).await?;
        if reply.status != StatusCode::UNAUTHORIZED {
            return accepted(reply);
        }
        let granted = self.granted(login, Some(&granted.token)).await?;
        self.send(call, &self.endpoint(&granted)?, Some(&granted.token)).await.and_then(accepted)
    }

    /// Where Neutron is: where the file of clouds says, or else the catalog.
    fn endpoint(&self, granted: &Granted) -> Result<Url, OpenStackError> {
        match &self.cloud.access {
            Access::Open { network_endpoint }
            | Access::Keystone { network_endpoint: Some(network_endpoint), .. } => {
                Ok(network_endpoint.clone())
            }
            Access::Keystone { login, region, interface, .. } => {
                granted.network_endpoint(interface, region.as_deref(), &login.auth_url)
            }
        }
    }

    async fn send(
        &self,
        call: &Call<'_>,
        endpoint: &Url,
        token: Option<&Secret>,
    ) -> Result<Reply, OpenStackError> {
        let mut url = endpoint.clone();
        let base = url.path().trim_end_matches('/').trim_end_matches("/v2.0").to_owned();
        url.set_path(&format!("{base}/v2.0/{}", call.path));
        url.set_query(None);
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        let ask = Ask { method: call.method.clone(), url, token, body: call.body.as_ref() };
        self.exchange(&ask, is_idempotent(call)).await
    }

    /// Sends a request, again for a while where its answer may be one of the moment, and nothing was done or the same may be asked
    /// twice.
    async fn exchange(&self, ask: &Ask<'_>, is_idempotent: bool) -> Result<Reply, OpenStackError> {
        let mut attempt = 1;
        loop {
            let outcome = self.http.exchange(ask).await;
            let attempts = match &outcome {
                Ok(reply) => self.attempts(reply.status, is_idempotent),
                Err(OpenStackError::Unreachable { is_sent: false, .. }) => self.settings.attempts,
                Err(OpenStackError::Unreachable { .. } | OpenStackError::Nonsense { .. })
                    if is_idempotent =>
                {
                    self.settings.attempts
                }
                Err(_) => 1,
            };
            if attempt >= attempts {
                return outcome;
            }
            let asked_for = outcome.ok().and_then(|reply| reply.retry_after()).unwrap_or_default();
            let own = (self.settings.retry_pause * attempt).mul_f64(rand::rng().random_range(0.5..1.5));
            sleep(own.max(asked_for.min(LONGEST_PAUSE))).await;
            attempt += 1;
        }
    }

    /// How often a request is sent that gets this status.
    fn attempts(&self, status: StatusCode, is_idempotent: bool) -> u32 {
        match status {
            StatusCode::TOO_MANY_REQUESTS => self.settings.attempts,
            StatusCode::NOT_FOUND => self.settings.attempts.min(MISSING),
            _ if status.is_server_error() && is_idempotent => self.settings.attempts,
            _ => 1,
        }
    }

    /// A token that lasts, and is not the one that a service knows no more.
    async fn granted(&self, login: &Login, stale: Option<&Secret>) -> Result<Arc<Granted>, OpenStackError> {
        if let Some(granted) = self.known(stale) {
            return Ok(granted);
        }
        // It is never closed, so that there always is a permit.
        let _permit = self.renewal.acquire().await.ok();
        // Somebody may have renewed it meanwhile.
        if let Some(granted) = self.known(stale) {
            return Ok(granted);
        }
        let granted = Arc::new(self.authenticate(login).await?);
        let until = Instant::now() + granted.life.saturating_sub(self.settings.renew_before);
        self.standing().granted = Some((Arc::clone(&granted), until));
        Ok(granted)
    }

    fn known(&self, stale: Option<&Secret>) -> Option<Arc<Granted>> {
        let (standing, now) = (self.standing(), Instant::now());
        let (granted, until) = standing.granted.as_ref()?;
        let is_good = now < *until && stale.is_none_or(|stale| *stale != granted.token);
        is_good.then(|| Arc::clone(granted))
    }

    /// Asks Keystone for a token, again where a refusal does not count yet.
    async fn authenticate(&self, login: &Login) -> Result<Granted, OpenStackError> {
        let (body, mut is_asked) = (login.identity.request(), false);
        let ask = login.ask(&body);
        loop {
            let may = self.standing().refusals.may();
            match may {
                May::BeTried => {}
                May::BeTriedAt(at) => sleep_until(at).await,
                May::Rest => {
                    let (who, pause) = (login.identity.who(), self.settings.credentials_pause);
                    let reason = self.standing().reason.clone();
                    return Err(OpenStackError::Credentials {
                        who,
                        request: ask.line(),
                        reason,
                        pause,
                        is_asked,
                    });
                }
            }
            let reply = self.exchange(&ask, true).await?;
            let reason = login.identity.taken_out_of(&reply.reason);
            match reply.status {
                StatusCode::CREATED => {
                    let granted = Granted::read(&reply, &ask)?;
                    self.standing().refusals.worked();
                    return Ok(granted);
                }
                StatusCode::UNAUTHORIZED => self.refuse(reason),
                status => return Err(OpenStackError::Refused { request: ask.line(), status, reason }),
            }
            is_asked = true;
        }
    }

    /// Takes note of credentials that were refused.
    fn refuse(&self, reason: String) {
        let pauses = Pauses { again: self.settings.refusal_pause, rest: self.settings.credentials_pause };
        let mut standing = self.standing();
        standing.refusals.refused(pauses);
        standing.reason = reason;
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether asking twice comes to the same as asking once.
fn is_idempotent(call: &Call<'_>) -> bool {
    call.method != Method::POST
}

fn accepted(reply: Reply) -> Result<Reply, OpenStackError> {
    match reply.status.is_success() {
        true => Ok(reply),
        false => {
            let Reply { request, status, reason, .. } = reply;
            Err(OpenStackError::Refused { request, status, reason })
        }
    }
}
