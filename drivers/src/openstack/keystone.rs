//! What Keystone is asked for a token, and what it answers: the token, how long it lasts, and where services are.

use super::error::OpenStackError;
use super::exchange::{Ask, Reply, nonsense};
use crate::client::secret::Secret;
use reqwest::{Method, Url};
use serde_json::{Value, json};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Who asks, and how that is proven.
#[derive(Debug, Clone)]
pub(super) enum Identity {
    /// A user, for a project or the whole system.
    Password {
        /// Identity, or name and domain.
        user: Value,
        password: Secret,
        scope: Value,
    },
    /// A credential that a user made for this; it has the scope that it was made for.
    ApplicationCredential {
        /// Identity, or name and user.
        credential: Value,
        secret: Secret,
    },
}

/// Where Keystone is, and who asks there.
#[derive(Debug, Clone)]
pub(super) struct Login {
    pub(super) auth_url: Url,
    pub(super) identity: Identity,
}

impl Identity {
    /// What asks for a token.
    pub(super) fn request(&self) -> Value {
        match self {
            Self::Password { user, password, scope } => {
                let mut user = user.clone();
                user["password"] = password.expose().into();
                let identity = json!({"methods": ["password"], "password": {"user": user}});
                json!({"auth": {"identity": identity, "scope": scope}})
            }
            Self::ApplicationCredential { credential, secret } => {
                let mut credential = credential.clone();
                credential["secret"] = secret.expose().into();
                let method = "application_credential";
                json!({"auth": {"identity": {"methods": [method], method: credential}}})
            }
        }
    }

    /// Who asks, for errors.
    pub(super) fn who(&self) -> String {
        let (what, named) = match self {
            Self::Password { user, .. } => ("user", user),
            Self::ApplicationCredential { credential, .. } => ("application credential", credential),
        };
        let name = named["name"].as_str().or(named["id"].as_str()).unwrap_or_default();
        format!("{what} {name:?}")
    }

    /// A text of Keystone without what proves who asks, should it hold it.
    pub(super) fn taken_out_of(&self, text: &str) -> String {
        match self {
            Self::Password { password: secret, .. } | Self::ApplicationCredential { secret, .. } => {
                secret.taken_out_of(text)
            }
        }
    }
}

impl Login {
    /// The request for a token with this body.
    pub(super) fn ask<'a>(&self, body: &'a Value) -> Ask<'a> {
        let mut url = self.auth_url.clone();
        let base = url.path().trim_end_matches('/').trim_end_matches("/v3").to_owned();
        url.set_path(&format!("{base}/v3/auth/tokens"));
        Ask { method: Method::POST, url, token: None, body: Some(body) }
    }
}

/// A service at one of its addresses.
#[derive(Debug, Clone)]
struct Endpoint {
    kind: String,
    interface: String,
    regions: [Option<String>; 2],
    url: String,
}

/// What Keystone has given.
#[derive(Debug)]
pub(super) struct Granted {
    pub(super) token: Secret,
    /// How long it lasts. Both ends are of Keystone's clock, since ours may be another.
    pub(super) life: Duration,
    endpoints: Vec<Endpoint>,
}

impl Granted {
    /// Reads an answer.
    ///
    /// # Errors
    ///
    /// [`OpenStackError::Nonsense`].
    pub(super) fn read(reply: &Reply, ask: &Ask<'_>) -> Result<Self, OpenStackError> {
        let token = reply.token().ok_or_else(|| nonsense(ask, "no X-Subject-Token"))?;
        let body = &reply.body["token"];
        let at = |key: &str| OffsetDateTime::parse(body[key].as_str()?, &Rfc3339).ok();
        let life = at("expires_at").zip(at("issued_at")).map(|(end, begin)| end - begin);
        let life = life.and_then(|life| Duration::try_from(life).ok());
        let life = life.ok_or_else(|| nonsense(ask, "a token without issued_at and expires_at"))?;
        let services = body["catalog"].as_array().into_iter().flatten();
        let endpoints = services.flat_map(|service| {
            let kind = service["type"].as_str().unwrap_or_default();
            service["endpoints"].as_array().into_iter().flatten().filter_map(|endpoint| {
                let text = |key: &str| endpoint[key].as_str().map(str::to_owned);
                let regions = [text("region_id"), text("region")];
                Some(Endpoint {
                    kind: kind.to_owned(),
                    interface: text("interface")?,
                    regions,
                    url: text("url")?,
                })
            })
        });
        Ok(Self { token, life, endpoints: endpoints.collect() })
    }

    /// Where Neutron is: the first endpoint with this interface, of this region where one is named.
    ///
    /// # Errors
    ///
    /// [`OpenStackError::NoEndpoint`].
    pub(super) fn network_endpoint(
        &self,
        interface: &str,
        region: Option<&str>,
        auth_url: &Url,
    ) -> Result<Url, OpenStackError> {
        let networks = || self.endpoints.iter().filter(|endpoint| endpoint.kind == "network");
        let is_meant = |endpoint: &&Endpoint| {
            let is_there = |region: &str| endpoint.regions.iter().any(|one| one.as_deref() == Some(region));
            endpoint.interface == interface && region.is_none_or(is_there)
        };
        let found = networks().find(is_meant).and_then(|endpoint| Url::parse(&endpoint.url).ok());
        found.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host()).ok_or_else(|| {
            let known = networks().map(|endpoint| {
                let region = endpoint.regions.iter().flatten().next().map_or("", String::as_str);
                format!("{} {region} {}", endpoint.interface, endpoint.url)
            });
            let known: Vec<_> = known.collect();
            OpenStackError::NoEndpoint {
                auth_url: auth_url.to_string(),
                interface: interface.to_owned(),
                region: region.map(|region| format!(" in region {region}")).unwrap_or_default(),
                known: if known.is_empty() { "none".to_owned() } else { known.join(", ") },
            }
        })
    }
}
