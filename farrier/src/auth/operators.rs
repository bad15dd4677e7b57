//! The operators of this conductor, known by HTTP basic or by tokens.

use crate::auth::password;
use crate::auth::password_cache::PasswordCache;
use crate::auth::rate_limit::{RateLimitKey, RateLimiter};
use crate::auth::shown::Shown;
use crate::auth::users_file::{Entry, UsersFile};
use crate::network::fair_semaphore::FairSemaphore;
use async_trait::async_trait;
use axum::extract::ConnectInfo;
use axum::http::HeaderValue;
use axum::http::request::Parts;
use farrier_access::{Authorization, Denial, Identity, Role};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::timeout;

/// Longest wait until a password can be checked.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Those of the file, as it is now.
pub(crate) struct Operators {
    users: watch::Receiver<Arc<UsersFile>>,
    password_cache: PasswordCache,
    rate_limiter: RateLimiter,
    /// Each check of a password takes a processor for some tenths of a second: half of them do something else.
    checks: FairSemaphore,
}

impl Operators {
    pub(crate) fn new(users: watch::Receiver<Arc<UsersFile>>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let checks = FairSemaphore::new(processors / 2);
        Self { users, password_cache: PasswordCache::new(), rate_limiter: RateLimiter::default(), checks }
    }

    /// Whether the user of this name has this password. A check takes the same time for known and unknown names.
    async fn is_right(
        &self,
        users: &UsersFile,
        peer: IpAddr,
        name: &str,
        password: &[u8],
    ) -> Result<bool, Denial> {
        let work = users.passwords().map(|(_, hash)| password::cost(hash)).max();
        let Some(work) = work else { return Ok(false) };
        let hash = match users.by_name(name) {
            Some((_, hash)) => hash.to_owned(),
            None => password::nobodys(work),
        };
        let verdict = self.password_cache.of(name, password, &hash, Instant::now());
        let key = RateLimitKey::new(peer, Some(name));
        let is_right =
            verdict.is_right.get_or_try_init(|| self.check(peer, &key, password, hash, work)).await?;
        Ok(*is_right)
    }

    /// Checks a password against a hash, off the threads that serve others.
    async fn check(
        &self,
        peer: IpAddr,
        key: &RateLimitKey,
        password: &[u8],
        hash: String,
        work: u32,
    ) -> Result<bool, Denial> {
        let throttled = |retry_after| Denial::Throttled { retry_after };
        self.rate_limiter.take(key, Instant::now()).map_err(throttled)?;
        let busy = |reason: &str| Denial::Unavailable { reason: reason.to_owned() };
        let Ok(permit) = timeout(CHECK_TIMEOUT, self.checks.take(peer)).await else {
            return Err(busy("too many passwords are being checked; try again, or use a token"));
        };
        let password = password.to_vec();
        let checked = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            password::is_right_after(&password, &hash, work)
        });
        let is_right = checked.await.map_err(|_| busy("the password could not be checked; try again"))?;
        match is_right {
            true => self.rate_limiter.forget(key),
            false => tracing::warn!(from = %key.network, name = key.name, "a wrong name or password"),
        }
        Ok(is_right)
    }
}

#[async_trait]
impl Authorization for Operators {
    async fn identify(&self, request: &Parts) -> Result<Identity, Denial> {
        let users = Arc::clone(&self.users.borrow());
        let peer = request.extensions.get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| peer.ip());
        let found = match Shown::of(&request.headers).map_err(unauthenticated)? {
            Shown::Token(token) => users.by_token(&token),
            Shown::Password { name, password } => {
                let is_right = self.is_right(&users, peer, &name, &password).await?;
                users.by_name(&name).filter(|_| is_right).map(|(entry, _)| entry)
            }
        };
        let Some(Entry { name, role, .. }) = found else {
            return Err(unauthenticated("unknown credentials"));
        };
        Ok(Identity { name: name.clone(), role: *role })
    }
}

fn unauthenticated(reason: &str) -> Denial {
    let challenges = ["Basic realm=\"Baremetal API\", charset=\"UTF-8\"", "Bearer realm=\"Baremetal API\""];
    Denial::Unauthenticated {
        reason: reason.to_owned(),
        challenges: challenges.map(HeaderValue::from_static).to_vec(),
    }
}

/// Every user of this host: `--auth-strategy noauth`.
pub(crate) struct Anybody;

#[async_trait]
impl Authorization for Anybody {
    async fn identify(&self, _: &Parts) -> Result<Identity, Denial> {
        Ok(Identity { name: "anybody".to_owned(), role: Role::Admin })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::users_file::Credential;
    use axum::http::Request;
    use axum::http::header::AUTHORIZATION;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    fn entry(name: &str, credential: Credential, role: Role) -> Entry {
        Entry { name: name.to_owned(), credential, role }
    }

    fn password(text: &str) -> Credential {
        Credential::Password(password::hash(text, 4).unwrap())
    }

    fn operators() -> (watch::Sender<Arc<UsersFile>>, Operators) {
        let mut users = UsersFile::default();
        users.set(entry("admin", password("secret"), Role::Admin));
        users.set(entry("watcher", password("look"), Role::Reader));
        users.set(entry("ci", Credential::of_token(b"token"), Role::Reader));
        let (sender, receiver) = watch::channel(Arc::new(users));
        (sender, Operators::new(receiver))
    }

    async fn identify(operators: &Operators, authorization: &str) -> Result<Identity, Denial> {
        let request = Request::builder().header(AUTHORIZATION, authorization).body(()).unwrap();
        operators.identify(&request.into_parts().0).await
    }

    fn basic(name: &str, password: &str) -> String {
        format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
    }

    #[tokio::test]
    async fn who_is_in_the_file_is_known_with_a_role() {
        let (_sender, operators) = operators();
        for (authorization, expected) in [
            (basic("admin", "secret"), Some(("admin", Role::Admin))),
            (basic("watcher", "look"), Some(("watcher", Role::Reader))),
            ("Bearer token".to_owned(), Some(("ci", Role::Reader))),
            (basic("admin", "look"), None),
            (basic("ci", "token"), None),
            (basic("", ""), None),
            (basic("nobody", "secret"), None),
            (basic("admin", &"x".repeat(8 << 10)), None),
            ("Bearer secret".to_owned(), None),
            ("Bearer ".to_owned(), None),
            ("Digest x".to_owned(), None),
        ] {
            let found = identify(&operators, &authorization).await;
            let found = match &found {
                Ok(identity) => Some((identity.name.as_str(), identity.role)),
                Err(Denial::Unauthenticated { reason, challenges }) => {
                    assert!(!reason.contains("secret") && challenges.len() == 2, "{reason}");
                    None
                }
                Err(other) => panic!("{other:?}"),
            };
            assert_eq!(found, expected, "{authorization}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_thousand_requests_check_one_password_and_guesses_stop_only_those_who_guess() {
        let (sender, operators) = operators();
        let operators = Arc::new(operators);
        let right = basic("admin", "secret");
        let clients = (0..1000).map(|_| {
            let (operators, right) = (Arc::clone(&operators), right.clone());
            tokio::spawn(async move { identify(&operators, &right).await.is_ok() })
        });
        for client in clients.collect::<Vec<_>>() {
            assert!(client.await.unwrap(), "more than one check, and the attempts would have been used up");
        }
        let mut throttled = false;
        for guess in 0..20 {
            let denial = identify(&operators, &basic("admin", &guess.to_string())).await.unwrap_err();
            throttled |= matches!(denial, Denial::Throttled { .. });
        }
        assert!(throttled);
        assert!(identify(&operators, &right).await.is_ok(), "who was known before still is");
        assert!(identify(&operators, &basic("watcher", "look")).await.is_ok(), "and others are");
        assert!(identify(&operators, "Bearer token").await.is_ok());
        sender.send_modify(|users| {
            Arc::make_mut(users).remove("admin");
        });
        assert!(identify(&operators, &right).await.is_err(), "until they are removed");
    }

    #[tokio::test]
    async fn without_any_password_there_is_nothing_to_check() {
        let (_sender, receiver) = watch::channel(Arc::new(UsersFile::default()));
        let operators = Operators::new(receiver);
        for _ in 0..100 {
            let denial = identify(&operators, &basic("admin", "secret")).await.unwrap_err();
            assert!(matches!(denial, Denial::Unauthenticated { .. }));
        }
    }
}
