//! Operators whom Keystone knows, beside those of the file. A token in `X-Auth-Token` is shown to Keystone, which tells
//! whose it is; a token may ask about itself, so the conductor needs no account there.

use super::operators::Operators;
use super::shown::X_AUTH_TOKEN;
use anyhow::Context;
use async_trait::async_trait;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use farrier_conductor::api::authorization::{Authorization, Denial, Identity, Role};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Url};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use tokio::sync::Semaphore;

/// Where Keystone wants the token that is asked about.
const X_SUBJECT_TOKEN: HeaderName = HeaderName::from_static("x-subject-token");

/// How long Keystone is not asked again about a token, as services of OpenStack have it.
const LIFE: Duration = Duration::from_secs(300);

/// Longest wait for Keystone.
const PATIENCE: Duration = Duration::from_secs(10);

/// Questions at a time.
const AT_ONCE: usize = 16;

/// Most tokens that are remembered.
const MOST: usize = 4096;

/// What a role may do, and whether its token has to be for the whole system instead of a project: an administrator of
/// one project is none of all machines.
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
    seen: Mutex<HashMap<[u8; 32], (Identity, Instant)>>,
    turns: Semaphore,
}

/// What Keystone tells of a token.
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
    system: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

impl Keystone {
    /// Asks the Keystone at a URL, whose certificate is from an authority in a file, or else from one of this host's.
    pub(crate) fn new(operators: Operators, url: &Url, ca: Option<&Path>) -> anyhow::Result<Self> {
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
            seen: Mutex::default(),
            turns: Semaphore::new(AT_ONCE),
        })
    }

    /// Whose token it is, from memory or from Keystone.
    async fn whose(&self, shown: &HeaderValue) -> Result<Identity, Denial> {
        let key = digest(&SHA256, shown.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes");
        let known = self.seen().get(&key).filter(|(_, until)| *until > Instant::now()).cloned();
        if let Some((identity, _)) = known {
            return Ok(identity);
        }
        let token = self.ask(shown).await?;
        let Ok(left) = Duration::try_from(token.expires_at - OffsetDateTime::now_utc()) else {
            return Err(self.unknown());
        };
        let identity = token.identity()?;
        let now = Instant::now();
        let mut seen = self.seen();
        if seen.len() >= MOST {
            seen.retain(|_, (_, until)| *until > now);
        }
        if seen.len() < MOST {
            seen.insert(key, (identity.clone(), now + left.min(LIFE)));
        }
        Ok(identity)
    }

    /// Has Keystone tell about a token.
    async fn ask(&self, shown: &HeaderValue) -> Result<Token, Denial> {
        let mut shown = shown.clone();
        shown.set_sensitive(true);
        let headers = HeaderMap::from_iter([(X_AUTH_TOKEN, shown.clone()), (X_SUBJECT_TOKEN, shown)]);
        let unavailable = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, "Keystone cannot be asked");
            Denial::Unavailable {
                reason: "Keystone cannot be asked about the token now; try again".to_owned(),
            }
        };
        let _turn = self.turns.acquire().await.map_err(|error| unavailable(&error))?;
        let reply = self.http.get(self.tokens.clone()).headers(headers).send().await;
        let reply = reply.map_err(|error| unavailable(&error))?;
        match reply.status() {
            StatusCode::OK => Ok(reply.json::<Answer>().await.map_err(|error| unavailable(&error))?.token),
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

    fn seen(&self) -> MutexGuard<'_, HashMap<[u8; 32], (Identity, Instant)>> {
        self.seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Token {
    /// Who has it, with the first role that counts.
    fn identity(self) -> Result<Identity, Denial> {
        let counts = |(name, of_system, _): &&(&str, bool, Role)| {
            (self.system.is_some() || !of_system) && self.roles.iter().any(|role| role.name == *name)
        };
        match ROLES.iter().find(counts) {
            Some((_, _, role)) => Ok(Identity { name: self.user.name, role: *role }),
            None => {
                let name = self.user.name;
                let reason = format!(
                    "{name} has no role here: it takes one for the system, or baremetal_admin or _observer"
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
            return self.whose(token).await;
        }
        if let Denial::Unauthenticated { challenges, .. } = &mut denial {
            challenges.push(self.challenge.clone());
        }
        Err(denial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Entry, Proof, Roll};
    use axum::extract::State;
    use axum::http::Request;
    use axum::routing::get;
    use axum::{Json, Router};
    use serde_json::{Value, json};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::net::TcpListener;
    use tokio::sync::watch;

    /// Answers as Keystone about tokens that say what they are: a role, and whether it is of the system.
    async fn tell(
        State(asked): State<Arc<AtomicUsize>>,
        headers: HeaderMap,
    ) -> Result<Json<Value>, StatusCode> {
        asked.fetch_add(1, Ordering::Relaxed);
        let subject = headers[X_SUBJECT_TOKEN].to_str().unwrap();
        assert_eq!(headers[X_AUTH_TOKEN], subject);
        let (role, scope) = subject.split_once('-').ok_or(StatusCode::NOT_FOUND)?;
        let expires =
            if scope == "past" { "2020-01-01T00:00:00.000000Z" } else { "2999-01-01T00:00:00.000000Z" };
        let mut token =
            json!({"user": {"name": "me", "id": "1"}, "roles": [{"name": role}], "expires_at": expires});
        match scope {
            "broken" => return Err(StatusCode::BAD_GATEWAY),
            "project" => token["project"] = json!({"name": "p"}),
            _ => token["system"] = json!({"all": true}),
        }
        Ok(Json(json!({"token": token})))
    }

    async fn keystone() -> (Arc<AtomicUsize>, Keystone) {
        rustls::crypto::ring::default_provider().install_default().ok();
        let asked = Arc::<AtomicUsize>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/identity", listener.local_addr().unwrap()).parse().unwrap();
        let router =
            Router::new().route("/identity/v3/auth/tokens", get(tell)).with_state(Arc::clone(&asked));
        tokio::spawn(axum::serve(listener, router).into_future());
        let mut roll = Roll::default();
        let proof = Proof::of_token(b"local");
        roll.set(Entry { name: "local".to_owned(), proof, role: Role::Admin });
        let operators = Operators::new(watch::channel(Arc::new(roll)).1);
        (asked, Keystone::new(operators, &url, None).unwrap())
    }

    async fn identify(keystone: &Keystone, token: &str) -> Result<Role, u16> {
        let request = Request::builder().header(X_AUTH_TOKEN, token).body(()).unwrap();
        let found = keystone.identify(&request.into_parts().0).await;
        found.map(|identity| identity.role).map_err(|denial| match denial {
            Denial::Unauthenticated { .. } => 401,
            Denial::Forbidden { .. } => 403,
            Denial::Throttled { .. } => 429,
            Denial::Unavailable { .. } => 503,
        })
    }

    #[tokio::test]
    async fn keystone_tells_whose_a_token_is_and_the_file_comes_first() {
        let (asked, keystone) = keystone().await;
        for (token, expected) in [
            ("admin-system", Ok(Role::Admin)),
            ("reader-system", Ok(Role::Reader)),
            ("admin-project", Err(403)),
            ("reader-project", Err(403)),
            ("baremetal_admin-project", Ok(Role::Admin)),
            ("baremetal_observer-project", Ok(Role::Reader)),
            ("nobody", Err(401)),
            ("admin-broken", Err(503)),
            ("admin-past", Err(401)),
        ] {
            assert_eq!(identify(&keystone, token).await, expected, "{token}");
        }
        let before = asked.load(Ordering::Relaxed);
        assert_eq!(identify(&keystone, "local").await, Ok(Role::Admin));
        assert_eq!(identify(&keystone, "admin-system").await, Ok(Role::Admin));
        assert_eq!(asked.load(Ordering::Relaxed), before, "what is known is not asked again");
    }

    #[tokio::test]
    async fn who_shows_nothing_is_told_of_keystone_and_of_passwords() {
        let (_, keystone) = keystone().await;
        let request = Request::builder().body(()).unwrap();
        let denial = keystone.identify(&request.into_parts().0).await.unwrap_err();
        let Denial::Unauthenticated { challenges, .. } = denial else { panic!("{denial:?}") };
        let said = challenges.iter().map(|value| value.to_str().unwrap()).collect::<Vec<_>>().join(", ");
        assert!(said.contains("Basic realm") && said.contains("Keystone uri=\"http://127.0.0.1:"), "{said}");
    }
}
