//! Who asks services, with a token that is renewed before it expires, and once when a service knows it no more.

use super::cloud::{Access, Cloud};
use super::error::OpenStackError;
use super::exchange::{Ask, Http, Reply};
use super::keystone::{Granted, Login};
use super::settings::OpenStackSettings;
use crate::secret::Secret;
use rand::Rng;
use reqwest::{Method, StatusCode, Url};
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

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
    turns: Semaphore,
}

#[derive(Debug, Default)]
struct Standing {
    granted: Option<(Arc<Granted>, Instant)>,
    /// Until when the credentials count as refused, and what was said.
    refused: Option<(OpenStackError, Instant)>,
}

impl Session {
    /// One that has no token yet.
    ///
    /// # Errors
    ///
    /// [`OpenStackError::CaFile`].
    pub(super) fn new(cloud: Cloud, settings: OpenStackSettings) -> Result<Self, OpenStackError> {
        let http = Http::new(&cloud.trust, &settings)?;
        Ok(Self { cloud, settings, http, standing: Mutex::default(), turns: Semaphore::new(1) })
    }

    /// Asks Neutron for something, again for a while where it is out of service and the same may be asked twice.
    ///
    /// # Errors
    ///
    /// [`OpenStackError`], also for what is refused.
    pub(super) async fn request(&self, call: &Call<'_>) -> Result<Reply, OpenStackError> {
        let mut attempt = 1;
        loop {
            let outcome = self.with_token(call).await;
            let pause = match &outcome {
                Ok(reply) if may_pass(call, reply.status) => reply.retry_after().unwrap_or_default(),
                Err(OpenStackError::Unreachable { is_sent, .. }) if !is_sent || is_idempotent(call) => {
                    Duration::ZERO
                }
                _ => return outcome.and_then(accepted),
            };
            if attempt >= self.settings.attempts {
                return outcome.and_then(accepted);
            }
            let own = (self.settings.retry_pause * attempt).mul_f64(rand::rng().random_range(0.5..1.5));
            sleep(own.max(pause.min(LONGEST_PAUSE))).await;
            attempt += 1;
        }
    }

    /// Asks once, and once more with a new token where the service knows the old one no more.
    async fn with_token(&self, call: &Call<'_>) -> Result<Reply, OpenStackError> {
        let login = match &self.cloud.access {
            Access::Open { network_endpoint } => return self.send(call, network_endpoint, None).await,
            Access::Keystone { login, .. } => login,
        };
        let granted = self.granted(login, None).await?;
        let reply = self.send(call, &self.endpoint(&granted)?, Some(&granted.token)).await?;
        if reply.status != StatusCode::UNAUTHORIZED {
            return Ok(reply);
        }
        let granted = self.granted(login, Some(&granted.token)).await?;
        self.send(call, &self.endpoint(&granted)?, Some(&granted.token)).await
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
        self.http.exchange(&ask).await
    }

    /// A token that lasts, and is not the one that a service knows no more.
    async fn granted(&self, login: &Login, stale: Option<&Secret>) -> Result<Arc<Granted>, OpenStackError> {
        if let Some(granted) = self.known(stale)? {
            return Ok(granted);
        }
        // It is never closed, so that there always is a permit.
        let _turn = self.turns.acquire().await.ok();
        // Somebody may have renewed it meanwhile.
        if let Some(granted) = self.known(stale)? {
            return Ok(granted);
        }
        let granted = Arc::new(self.authenticate(login).await?);
        let until = Instant::now() + granted.life.saturating_sub(self.settings.renew_before);
        self.standing().granted = Some((Arc::clone(&granted), until));
        Ok(granted)
    }

    fn known(&self, stale: Option<&Secret>) -> Result<Option<Arc<Granted>>, OpenStackError> {
        let (standing, now) = (self.standing(), Instant::now());
        if let Some((error, until)) = &standing.refused
            && now < *until
        {
            return Err(error.clone());
        }
        let lasting = standing
            .granted
            .as_ref()
            .filter(|(granted, until)| now < *until && stale.is_none_or(|stale| *stale != granted.token));
        Ok(lasting.map(|(granted, _)| Arc::clone(granted)))
    }

    async fn authenticate(&self, login: &Login) -> Result<Granted, OpenStackError> {
        let body = login.identity.request();
        let ask = login.ask(&body);
        let reply = self.http.exchange(&ask).await?;
        let reason = login.identity.taken_out_of(&reply.reason);
        match reply.status {
            StatusCode::CREATED => Granted::read(&reply, &ask),
            StatusCode::UNAUTHORIZED => {
                let (who, pause) = (login.identity.who(), self.settings.credentials_pause);
                let error = OpenStackError::Credentials { who, request: ask.line(), reason, pause };
                self.standing().refused = Some((error.clone(), Instant::now() + pause));
                Err(error)
            }
            status => Err(OpenStackError::Refused { request: ask.line(), status, reason }),
        }
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether asking twice comes to the same as asking once.
fn is_idempotent(call: &Call<'_>) -> bool {
    call.method != Method::POST
}

/// Whether a refusal may be one of the moment, and nothing has been done.
fn may_pass(call: &Call<'_>, status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() && is_idempotent(call)
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
