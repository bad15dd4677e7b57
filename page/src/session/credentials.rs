//! What a user has signed in with.

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Where clients of OpenStack put a token.
const X_AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// Credentials, as the head of a request to the REST interface has them. They are kept, and not what they were worth when
/// they came: a user who was removed, or got another role, is asked again by the same rules. They are never printed.
#[derive(Clone)]
pub(crate) struct Credentials {
    name: HeaderName,
    value: HeaderValue,
}

impl Credentials {
    /// A token; nothing where it can be none.
    pub(crate) fn token(token: &str) -> Option<Self> {
        let mut value = HeaderValue::try_from(token).ok()?;
        value.set_sensitive(true);
        Some(Self { name: X_AUTH_TOKEN, value })
    }

    /// A user and a password; nothing where they can be none.
    pub(crate) fn password(user: &str, password: &str) -> Option<Self> {
        if user.contains(':') {
            return None;
        }
        let basic = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        let mut value = HeaderValue::try_from(basic).ok()?;
        value.set_sensitive(true);
        Some(Self { name: AUTHORIZATION, value })
    }

    /// Puts them in the head of a request, instead of any others.
    pub(crate) fn present(&self, headers: &mut HeaderMap) {
        headers.remove(AUTHORIZATION);
        headers.remove(X_AUTH_TOKEN);
        headers.insert(self.name.clone(), self.value.clone());
    }
}
