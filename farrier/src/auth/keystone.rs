//! Operators that Keystone knows, beside those of the file. A token in `X-Auth-Token` is shown to Keystone, which returns
//! whose it is; a token may ask about itself, so the conductor needs no account there.

use crate::auth::operators::Operators;
use crate::auth::rate_limit::{RateLimit, RateLimitKey, RateLimiter};
use crate::auth::shown::X_AUTH_TOKEN;
use crate::network::fair_semaphore::FairSemaphore;
use anyhow::Context;
use async_trait::async_trait;
use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use farrier_access::{Authorization, Denial, Identity, Role};
use farrier_protocol::json::{self, Limits};
use futures_util::FutureExt;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Response, Url};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use tokio::time::timeout;

/// Where Keystone wants the token that is asked about.
const X_SUBJECT_TOKEN: HeaderName = HeaderName::from_static("x-subject-token");

/// How long Keystone is not asked again about a token, as services of OpenStack have it.
const LIFE: Duration = Duration::from_secs(300);

/// Longest wait for Keystone.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a token is not asked about again that Keystone did not know twice: one wrong answer decides nothing.
const LIFE_OF_UNKNOWN: Duration = Duration::from_secs(30);

/// Questions at a time; of one client, an eighth of them.
const AT_ONCE: usize = 16;

/// Questions that may wait; of one client, an eighth of them.
const QUEUE: usize = 128;

/// How many unknown tokens a client may show: each is a question to Keystone.
const UNKNOWN: RateLimit = RateLimit { burst: 20, interval: Duration::from_secs(2) };

/// Most tokens that are remembered.
const MOST: usize = 4096;

/// Most bytes of an answer: one without a catalogue has some hundreds.
const LONGEST: usize = 256 << 10;

/// The domain of Keystone whose projects count, as Ironic has it.
const DOMAIN: &str = "default";

/// What a role may do, and whether its token has to be for the whole system: an administrator of one project is none of
/// all machines. The others count in the projects of operators too (`is_member` of Ironic's policy).
const ROLES: &[(&str, bool, Role)] = &[
    ("admin", true, Role::Admin),
    ("baremetal_admin", false, Role::Admin),
    ("member", true, Role::Reader),
    ("reader", true, Role::Reader),
    ("baremetal_observer", false, Role::Reader),
];

/// Keystone, and the file of operators.
pub(crate) struct Keystone {
    operators: Operators,
    http: Client,
    tokens: Url,
    challenge: HeaderValue,
    projects: Vec<String>,
    seen: Mutex<HashMap<[u8; 32], Known>>,
    rate_limiter: RateLimiter,
    queue: FairSemaphore,
    questions: FairSemaphore,
}

/// What is known of a token, and until when.
#[derive(Debug, Clone)]
struct Known {
    owner: Owner,
    until: Instant,
}

/// Whose a token is.
#[derive(Debug, Clone)]
enum Owner {
    Known(Identity),
    /// Unknown, after one reply of Keystone.
    UnknownOnce,
    /// Unknown.
    Unknown,
}

/// The reply of Keystone about a token.
#[derive(Debug, Deserialize)]
struct Answer {
    token: Token,
}

#[derive(Debug, Deserialize)]
struct Token {
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
    user: Named,
    #[serde(default)]
    roles: Vec<Named>,
    #[serde(default)]
    system: Option<IgnoredAny>,
    #[serde(default)]
    project: Option<Project>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Project {
    name: String,
    domain: Domain,
}

#[derive(Debug, Deserialize)]
struct Domain {
    id: String,
}

impl Keystone {
    /// Asks the Keystone at a URL, whose certificate is from an authority in a file, or else from one of this host's.
    /// Roles for machines count in these projects.
    pub(crate) fn new(
        operators: Operators,
        url: &Url,
        ca: Option<&Path>,
        projects: Vec<String>,
    ) -> anyhow::Result<Self> {
        if url.scheme() != "https" {
            tracing::warn!(%url, "requests to Keystone use no TLS: tokens are in clear text, and an attacker on the path can forge responses");
        }
        let mut builder = Client::builder().timeout(PATIENCE).redirect(Policy::none());
        if let Some(file) = ca {
            let failed = || format!("--keystone-ca {} cannot be used", file.display());
            let text = std::fs::read(file).with_context(failed)?;
            builder = builder.tls_certs_only(Certificate::from_pem_bundle(&text).with_context(failed)?);
        }
        let base = url.as_str().trim_end_matches('/').trim_end_matches("/v3");
        let mut tokens: Url = format!("{base}/v3/auth/tokens").parse().context("--keystone-url is no URL")?;
        tokens.set_query(Some("nocatalog"));
        let challenge = HeaderValue::from_str(&format!("Keystone uri=\"{base}\""))?;
        let http = builder.build()?;
        Ok(Self {
            operators,
            http,
            tokens,
            challenge,
            projects,
            seen: Mutex::default(),
            rate_limiter: RateLimiter::default(),
            queue: FairSemaphore::new(QUEUE),
            questions: FairSemaphore::new(AT_ONCE),
        })
    }

    /// Whose token it is that a client shows, from memory or from Keystone.
    async fn whose(&self, shown: &HeaderValue, peer: IpAddr) -> Result<Identity, Denial> {
        let key = digest(&SHA256, shown.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes");
        let known = self.seen().get(&key).filter(|known| known.until > Instant::now()).cloned();
        let is_doubted = match known.map(|known| known.owner) {
            Some(Owner::Known(identity)) => return Ok(identity),
            Some(Owner::Unknown) => return Err(self.unknown()),
            Some(Owner::UnknownOnce) => true,
            None => false,
        };
        let limit_key = RateLimitKey::new(peer, None);
        let throttled = |retry_after| Denial::Throttled { retry_after };
        self.rate_limiter.take_of(&limit_key, UNKNOWN, Instant::now()).map_err(throttled)?;
        let token = match self.ask(shown, peer).await {
            Err(denial @ Denial::Unauthenticated { .. }) => {
                let owner = if is_doubted { Owner::Unknown } else { Owner::UnknownOnce };
                self.remember(key, owner, LIFE_OF_UNKNOWN);
                return Err(denial);
            }
            asked => asked?,
        };
        let Ok(left) = Duration::try_from(token.expires_at - OffsetDateTime::now_utc()) else {
            self.remember(key, Owner::Unknown, LIFE_OF_UNKNOWN);
            return Err(self.unknown());
        };
        self.rate_limiter.forget(&limit_key);
        let identity = token.identity(&self.projects)?;
        self.remember(key, Owner::Known(identity.clone()), left.min(LIFE));
        Ok(identity)
    }

    fn remember(&self, key: [u8; 32], owner: Owner, life: Duration) {
        let now = Instant::now();
        let mut seen = self.seen();
        if seen.len() >= MOST {
            seen.retain(|_, known| known.until > now);
        }
        if seen.len() >= MOST {
            // Unknown ones go first: made-up tokens drive out no known one.
            let soonest =
                seen.iter().min_by_key(|(_, known)| (matches!(known.owner, Owner::Known(_)), known.until));
            let soonest = soonest.map(|(key, _)| *key);
            soonest.into_iter().for_each(|key| drop(seen.remove(&key)));
        }
        seen.insert(key, Known { owner, until: now + life });
    }

    /// Has Keystone tell about a token.
    async fn ask(&self, shown: &HeaderValue, peer: IpAddr) -> Result<Token, Denial> {
        let mut shown = shown.clone();
        shown.set_sensitive(true);
        let headers = HeaderMap::from_iter([(X_AUTH_TOKEN, shown.clone()), (X_SUBJECT_TOKEN, shown)]);
        let unavailable = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, "the request to Keystone failed");
            Denial::Unavailable { reason: "Keystone is unavailable; try again".to_owned() }
        };
        let Some(_queued) = self.queue.take(peer).now_or_never() else {
            return Err(unavailable(&"too many requests are queued"));
        };
        let permit = timeout(PATIENCE, self.questions.take(peer)).await;
        let _permit = permit.map_err(|_| unavailable(&"the queue is too slow"))?;
        let reply = self.http.get(self.tokens.clone()).headers(headers).send().await;
        let reply = reply.map_err(|error| unavailable(&error))?;
        match reply.status() {
            StatusCode::OK => answer(reply).await.map_err(|error| unavailable(&error)),
            StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND => Err(self.unknown()),
            status => Err(unavailable(&format!("it answered {status}"))),
        }
    }

    fn unknown(&self) -> Denial {
        Denial::Unauthenticated {
            reason: "Keystone does not know the token, or it has expired".to_owned(),
            challenges: vec![self.challenge.clone()],
        }
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<[u8; 32], Known>> {
        self.seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// What is in an answer of a bounded length.
async fn answer(mut reply: Response) -> Result<Token, String> {
    let mut text = Vec::new();
    while let Some(chunk) = reply.chunk().await.map_err(|error| error.to_string())? {
        text.extend_from_slice(&chunk);
        if text.len() > LONGEST {
            return Err(format!("its answer has more than {} KiB", LONGEST >> 10));
        }
    }
    let answer = json::read::<Answer>(&text, &Limits::USUAL);
    answer.map(|answer| answer.token).map_err(|error| format!("its answer cannot be used: {error}"))
}

impl Token {
    /// Who has it, with the first role that counts.
    fn identity(self, projects: &[String]) -> Result<Identity, Denial> {
        let is_of = |project: &Project| project.domain.id == DOMAIN && projects.contains(&project.name);
        let is_member = self.project.as_ref().is_some_and(is_of);
        let counts = |(name, of_system, _): &&(&str, bool, Role)| {
            let is_in_scope = self.system.is_some() || (!of_system && is_member);
            is_in_scope && self.roles.iter().any(|role| role.name == *name)
        };
        match ROLES.iter().find(counts) {
            Some((_, _, role)) => Ok(Identity { name: self.user.name, role: *role }),
            None => {
                let name = self.user.name;
                let reason = format!(
                    "{name} has no role for this conductor: it needs a system role, or baremetal_admin or baremetal_observer in one of the projects {}",
                    projects.join(", ")
                );
                Err(Denial::Forbidden { reason })
            }
        }
    }
}

#[async_trait]
impl Authorization for Keystone {
    /// The file comes first; only a token that it does not have is shown to Keystone.
    async fn identify(&self, request: &Parts) -> Result<Identity, Denial> {
        let mut denial = match self.operators.identify(request).await {
            Err(denial @ Denial::Unauthenticated { .. }) => denial,
            found => return found,
        };
        if let Some(token) = request.headers.get(X_AUTH_TOKEN) {
            let peer = request.extensions.get::<ConnectInfo<SocketAddr>>();
            let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| peer.ip());
            return self.whose(token, peer).await;
        }
        if let Denial::Unauthenticated { challenges, .. } = &mut denial {
            challenges.push(self.challenge.clone());
        }
        Err(denial)
    }
}

#[cfg(test)]
#[path = "keystone_tests.rs"]
mod tests;
