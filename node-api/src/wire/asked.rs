//! What a request asks for beside its path: the version, and the words of its query.

use crate::wire::fields::{Field, flag, named};
use crate::wire::reply::Refusal;
use axum::extract::{FromRequestParts, Query};
use axum::http::Method;
use axum::http::header::HOST;
use axum::http::request::Parts;
use farrier_protocol::heartbeat::ApiVersion;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How clients reach a listener: an extension of its requests, which say nothing of it. Without it, links are of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheme(
    /// `http` or `https`.
    pub &'static str,
);

/// URL of a listener as its clients reach it: an extension of its requests. Without it, links are made of the name that a
/// client calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(
    /// Without a slash at its end.
    pub Arc<str>,
);

/// First version of `detail` in most lists.
const DETAIL: u16 = 43;

/// What every handler may need of a request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The version that was negotiated.
    pub(crate) version: ApiVersion,
    /// How the client calls this conductor, for links in the answer.
    pub(crate) url: String,
    method: Method,
    words: BTreeMap<String, String>,
    query: String,
}

impl<S: Sync> FromRequestParts<S> for Asked {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refusal> {
        let version = parts.extensions.get().copied().unwrap_or(ApiVersion::v1(1));
        let words = Query::try_from_uri(&parts.uri);
        let Query(words) = words.map_err(|error| Refusal::bad_request(format!("the query: {error}")))?;
        let query = parts.uri.query().unwrap_or_default().to_owned();
        Ok(Self { version, url: url(parts), method: parts.method.clone(), words, query })
    }
}

/// How the client of a request reaches this conductor.
fn url(parts: &Parts) -> String {
    if let Some(PublicUrl(url)) = parts.extensions.get() {
        return url.to_string();
    }
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let Scheme(scheme) = parts.extensions.get().copied().unwrap_or(Scheme("http"));
    format!("{scheme}://{host}")
}

impl Asked {
    /// Refuses a version from before something was there.
    ///
    /// # Errors
    ///
    /// 406.
    pub(crate) fn needs(&self, minor: u16, what: &str) -> Result<(), Refusal> {
        match self.version.minor < minor {
            true => Err(Refusal::needs(minor, what)),
            false => Ok(()),
        }
    }

    /// As if there were nothing at this path, for versions from before there were allocations, deploy templates, runbooks.
    ///
    /// # Errors
    ///
    /// 404 for a request that reads, and 405 for one that changes something, as Ironic answers them.
    pub(crate) fn since(&self, minor: u16) -> Result<(), Refusal> {
        match self.version.minor < minor {
            true if self.method == Method::GET => Err(Refusal::not_found()),
            true => Err(Refusal::wrong_method()),
            false => Ok(()),
        }
    }

    /// As [`Self::since`], for port groups, volumes and what belongs to a node.
    ///
    /// # Errors
    ///
    /// 404, whatever the method.
    pub(crate) fn part_since(&self, minor: u16) -> Result<(), Refusal> {
        match self.version.minor < minor {
            true => Err(Refusal::not_found()),
            false => Ok(()),
        }
    }

    /// Takes a word out of the query, in versions that have it.
    ///
    /// # Errors
    ///
    /// 406.
    pub(crate) fn take(&mut self, word: &str, since: u16) -> Result<Option<String>, Refusal> {
        let taken = self.words.remove(word);
        match taken.is_some() {
            true => self.needs(since, word).map(|()| taken),
            false => Ok(None),
        }
    }

    /// As [`Self::take`], for a word that is true or false.
    ///
    /// # Errors
    ///
    /// 406, and 400 where it is neither.
    pub(crate) fn take_flag(&mut self, word: &str, since: u16) -> Result<Option<bool>, Refusal> {
        let Some(text) = self.take(word, since)? else { return Ok(None) };
        let flag = flag(&text)
            .ok_or_else(|| Refusal::bad_request(format!("{word}: {text:?} must be true or false")))?;
        Ok(Some(flag))
    }

    /// As [`Self::take`], for a word that is read.
    ///
    /// # Errors
    ///
    /// 406, and 400 where it cannot be read.
    pub(crate) fn take_as<T: std::str::FromStr>(
        &mut self,
        word: &str,
        since: u16,
        kind: &str,
    ) -> Result<Option<T>, Refusal> {
        let Some(text) = self.take(word, since)? else { return Ok(None) };
        let read =
            text.parse().map_err(|_| Refusal::bad_request(format!("{word}: {text:?} must be {kind}")))?;
        Ok(Some(read))
    }

    /// The fields of an answer: those that are asked for by `fields`, all of them by `detail`, else the usual ones.
    ///
    /// # Errors
    ///
    /// 406 for fields of later versions, 400 for unknown ones, and for both words at once.
    pub(crate) fn take_fields(
        &mut self,
        table: &'static [Field],
        usual: Option<&'static [&'static str]>,
    ) -> Result<Vec<&'static Field>, Refusal> {
        self.take_fields_since(DETAIL, table, usual)
    }

    /// As [`Self::take_fields`], where `detail` is there since another version.
    ///
    /// # Errors
    ///
    /// As [`Self::take_fields`].
    pub(crate) fn take_fields_since(
        &mut self,
        since: u16,
        table: &'static [Field],
        usual: Option<&'static [&'static str]>,
    ) -> Result<Vec<&'static Field>, Refusal> {
        let detail = self.take_flag("detail", since)?;
        let given = self.take("fields", 8)?;
        let usual = usual.filter(|_| detail != Some(true));
        let Some(given) = given else {
            let is_usual = |field: &&Field| usual.is_none_or(|names| names.contains(&field.name));
            let version = self.version;
            return Ok(table.iter().filter(|field| field.is_in(version)).filter(is_usual).collect());
        };
        if detail == Some(true) {
            return Err(Refusal::bad_request("fields and detail exclude each other; leave one out"));
        }
        let mut fields: Vec<&'static Field> = Vec::new();
        for name in given.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let field = named(table, name)
                .ok_or_else(|| Refusal::bad_request(format!("fields: there is no field {name:?}")))?;
            self.needs(field.since, name)?;
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
        Ok(fields)
    }

    /// Where the same is asked for at a path, but for where a list begins and how long it is.
    pub(crate) fn same_list(&self, path: &str) -> String {
        let is_kept =
            |word: &&str| !["limit", "marker"].contains(&word.split('=').next().unwrap_or_default());
        let kept: Vec<_> = self.query.split('&').filter(|word| !word.is_empty()).filter(is_kept).collect();
        let mark = if kept.is_empty() { "" } else { "?" };
        format!("{}/v1/{path}{mark}{}", self.url, kept.join("&"))
    }

    /// Refuses unused parameters.
    ///
    /// # Errors
    ///
    /// 400, naming the first.
    pub(crate) fn done(&self) -> Result<(), Refusal> {
        match self.words.keys().next() {
            Some(word) => {
                Err(Refusal::bad_request(format!("{word}: this resource is not asked by that word")))
            }
            None => Ok(()),
        }
    }
}
