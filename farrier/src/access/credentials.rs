//! What a command shows of itself.

use crate::state::StateDir;
use crate::state::token;
use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use std::path::Path;

/// Where a token goes: there it counts for this conductor and for Keystone alike.
const X_AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// Kinds of authentication that `baremetal` has for a conductor whose URL is given.
const STANDALONE: [&str; 3] = ["none", "http_basic", "admin_token"];

/// A header, whose value is never printed.
#[derive(Debug)]
pub(super) struct Credentials(HeaderName, HeaderValue);

impl Credentials {
    /// Finds them: a token of the environment, a name and password of the environment, a file, what `baremetal` would
    /// show to a conductor without Keystone, and at last the token in the state directory.
    pub(super) fn find(
        variable: &dyn Fn(&str) -> Option<String>,
        file: Option<&Path>,
        state: Option<&StateDir>,
    ) -> anyhow::Result<Option<Self>> {
        if let Some(token) = variable("FARRIER_TOKEN") {
            return Self::token(&token).map(Some);
        }
        if let Some(name) = variable("FARRIER_USERNAME") {
            return Self::pair(&name, variable("FARRIER_PASSWORD"), "FARRIER_PASSWORD").map(Some);
        }
        if let Some(file) = file {
            return Self::in_file(file).map(Some);
        }
        match variable("OS_AUTH_TYPE").as_deref() {
            Some("http_basic") => {
                let name = variable("OS_USERNAME").context("OS_AUTH_TYPE=http_basic needs OS_USERNAME")?;
                return Self::pair(&name, variable("OS_PASSWORD"), "OS_PASSWORD").map(Some);
            }
            Some("admin_token") => {
                let token = variable("OS_TOKEN").context("OS_AUTH_TYPE=admin_token needs OS_TOKEN")?;
                return Self::token(&token).map(Some);
            }
            _ => {}
        }
        match state.map(StateDir::token).filter(|file| file.exists()) {
            Some(file) => Self::token(&token::read(&file)?).map(Some),
            None => Ok(None),
        }
    }

    fn in_file(file: &Path) -> anyhow::Result<Self> {
        let failed = || format!("the credentials {} cannot be read", file.display());
        let text = std::fs::read_to_string(file).with_context(failed)?;
        match text.trim_end_matches(['\r', '\n']).split_once(':') {
            Some((name, password)) => Self::pair(name, Some(password.to_owned()), "a password"),
            None => Self::token(text.trim()),
        }
    }

    fn token(token: &str) -> anyhow::Result<Self> {
        Self::new(X_AUTH_TOKEN, token, token.is_empty())
    }

    fn pair(name: &str, password: Option<String>, what: &str) -> anyhow::Result<Self> {
        let password = password.with_context(|| format!("{what} is missing beside the name {name:?}"))?;
        if name.contains(':') {
            bail!("a user name must not contain a colon");
        }
        let pair = STANDARD.encode(format!("{name}:{password}"));
        Self::new(AUTHORIZATION, &format!("Basic {pair}"), name.is_empty())
    }

    /// No error contains the text.
    fn new(header: HeaderName, text: &str, is_empty: bool) -> anyhow::Result<Self> {
        let value = HeaderValue::from_str(text).ok().filter(|_| !is_empty);
        let mut value = value.context("the token or name is empty or has invalid characters")?;
        value.set_sensitive(true);
        Ok(Self(header, value))
    }

    pub(super) fn header(&self) -> (HeaderName, HeaderValue) {
        (self.0.clone(), self.1.clone())
    }
}

/// Whether the environment is of `baremetal` with a conductor without Keystone: what belongs to Keystone is never
/// shown.
pub(super) fn is_standalone(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    variable("OS_AUTH_TYPE").is_some_and(|kind| STANDALONE.contains(&kind.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(variables: &[(&str, &str)], file: Option<&Path>) -> anyhow::Result<Option<String>> {
        let variable =
            |name: &str| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
        let found = Credentials::find(&variable, file, None)?;
        assert!(!format!("{found:?}").contains("c2VjcmV0"), "{found:?}");
        Ok(found.map(|found| format!("{}: {}", found.0, found.1.to_str().unwrap())))
    }

    #[test]
    fn credentials_are_taken_from_the_first_place_that_has_any() {
        let folder = tempfile::tempdir().unwrap();
        let file = |text: &str| {
            let path = folder.path().join(text.trim().replace(':', "-"));
            std::fs::write(&path, text).unwrap();
            path
        };
        let (token, pair) = (file("abc\n"), file("me:secret: x \r\n"));
        let farrier = [("FARRIER_USERNAME", "me"), ("FARRIER_PASSWORD", "secret")];
        let standalone = [("OS_AUTH_TYPE", "http_basic"), ("OS_USERNAME", "me"), ("OS_PASSWORD", "secret")];
        let keystone = [("OS_AUTH_TYPE", "password"), ("OS_USERNAME", "me"), ("OS_PASSWORD", "secret")];
        let admin = [("OS_AUTH_TYPE", "admin_token"), ("OS_TOKEN", "abc")];
        let (basic, abc) = ("authorization: Basic bWU6c2VjcmV0", "x-auth-token: abc");
        for (variables, file, expected) in [
            ([&[("FARRIER_TOKEN", "abc")], &farrier[..]].concat(), Some(&pair), Some(abc)),
            (farrier.to_vec(), Some(&token), Some(basic)),
            (standalone.to_vec(), Some(&token), Some(abc)),
            (vec![], Some(&pair), Some("authorization: Basic bWU6c2VjcmV0OiB4IA==")),
            (standalone.to_vec(), None, Some(basic)),
            (admin.to_vec(), None, Some(abc)),
            (admin[1..].to_vec(), None, None),
            (keystone.to_vec(), None, None),
            (keystone[1..].to_vec(), None, None),
            (vec![("OS_AUTH_TYPE", "none")], None, None),
        ] {
            assert_eq!(find(&variables, file.map(|path| path.as_path())).unwrap().as_deref(), expected);
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_showing_it() {
        for (variables, expected) in [
            (vec![("FARRIER_USERNAME", "me")], "FARRIER_PASSWORD is missing beside the name \"me\""),
            (vec![("OS_AUTH_TYPE", "http_basic")], "needs OS_USERNAME"),
            (vec![("FARRIER_TOKEN", "sec\nret")], "has invalid characters"),
            (vec![("FARRIER_USERNAME", "a:b"), ("FARRIER_PASSWORD", "secret")], "must not contain a colon"),
        ] {
            let said = find(&variables, None).unwrap_err().to_string();
            assert!(said.contains(expected) && !said.contains("sec"), "{said}");
        }
        assert!(find(&[], Some(Path::new("/nonexistent"))).is_err());
    }
}
