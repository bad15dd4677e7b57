//! Roles and identities of the operators of a conductor. An [`Authorization`] identifies the user of a request; each
//! interface for operators puts it before its routes, and answers a [`Denial`] in its own format.

use async_trait::async_trait;
use http::request::Parts;
use http::{HeaderValue, Method};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The rights of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Look: GET and HEAD.
    Reader,
    /// Everything.
    Admin,
}

impl Role {
    /// Whether this role may use the method.
    pub fn allows(self, method: &Method) -> bool {
        self == Self::Admin || [Method::GET, Method::HEAD].contains(method)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Reader => "reader",
            Self::Admin => "admin",
        })
    }
}

/// A word that is no role.
#[derive(Debug, thiserror::Error)]
#[error("the role {0:?} is not known; use admin or reader")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        match text {
            "admin" => Ok(Self::Admin),
            "reader" => Ok(Self::Reader),
            other => Err(UnknownRole(other.to_owned())),
        }
    }
}

/// Who asks. Handlers find it among the extensions of their request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Name in the log.
    pub name: String,
    /// What this one may do.
    pub role: Role,
}

/// Whether a user may read consoles and their addresses. Without authentication every user may.
pub fn sees_consoles(identity: Option<&Identity>) -> bool {
    identity.is_none_or(|identity| identity.role == Role::Admin)
}

/// The reason for a refusal. Its text goes to the client, so it has no credentials.
#[derive(Debug, Clone)]
pub enum Denial {
    /// The credentials of the request are unknown: 401.
    Unauthenticated {
        /// What is wrong with it.
        reason: String,
        /// Values of `WWW-Authenticate`: what could be shown instead.
        challenges: Vec<HeaderValue>,
    },
    /// Known, and may not do this: 403.
    Forbidden {
        /// What is missing.
        reason: String,
    },
    /// There were too many attempts: 429.
    Throttled {
        /// The time until the next attempt; clients get whole seconds.
        retry_after: Duration,
    },
    /// It cannot be found out now: 503.
    Unavailable {
        /// Why.
        reason: String,
    },
}

/// Identifies the user.
#[async_trait]
pub trait Authorization: Send + Sync + 'static {
    /// Who sent a request with this head. Nothing of its body was read yet.
    ///
    /// # Errors
    ///
    /// [`Denial`].
    async fn identify(&self, request: &Parts) -> Result<Identity, Denial>;
}
