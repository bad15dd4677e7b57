//! A cloud as `clouds.yaml` describes it, the file that OpenStack's own clients read: where its Keystone is, who asks
//! there, and which endpoints are taken.

use super::error::OpenStackError;
use super::keystone::{Identity, Login};
use crate::client::secret::Secret;
use reqwest::Url;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The domain of who and what has none.
const DEFAULT_DOMAIN: &str = "default";

/// The key that says where Neutron is.
const ENDPOINT: &str = "network_endpoint_override";

/// Whose certificates services may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trust {
    /// Those of authorities that this host trusts.
    Host,
    /// Those of authorities in a file.
    File(PathBuf),
    /// Any certificate.
    Anybody,
}

/// A cloud, and who asks there.
#[derive(Debug, Clone)]
pub struct Cloud {
    pub(super) access: Access,
    pub(super) trust: Trust,
}

/// How services are found, and asked.
#[derive(Debug, Clone)]
pub(super) enum Access {
    /// With a token of Keystone.
    Keystone {
        login: Box<Login>,
        region: Option<String>,
        /// `public`, `internal` or `admin`.
        interface: String,
        /// URL of Neutron, instead of the catalog's.
        network_endpoint: Option<Url>,
    },
    /// Without any: there is no Keystone.
    Open {
        /// Where Neutron is.
        network_endpoint: Url,
    },
}

impl Cloud {
    /// Reads the cloud of a name from a file; the only one where none is named.
    ///
    /// # Errors
    ///
    /// [`OpenStackError::CloudsFile`].
    pub fn load(file: &Path, name: Option<&str>) -> Result<Self, OpenStackError> {
        let text = std::fs::read_to_string(file).map_err(|error| wrong(file, &error.to_string()))?;
        Self::parse(&text, name).map_err(|reason| wrong(file, &reason))
    }

    /// The error has no quote of the text, because that has secrets.
    fn parse(text: &str, name: Option<&str>) -> Result<Self, String> {
        let content: Value = serde_saphyr::from_str(text).map_err(|error| match error.location() {
            Some(at) => format!("line {} is no YAML", at.line()),
            None => "is no YAML".to_owned(),
        })?;
        let clouds = content["clouds"].as_object().ok_or("has no map `clouds`")?;
        let names = || clouds.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let (name, cloud) = match name {
            Some(name) => clouds
                .get_key_value(name)
                .ok_or_else(|| format!("has no cloud {name:?}; it has: {}", names()))?,
            None if clouds.len() == 1 => clouds.iter().next().ok_or("has no cloud")?,
            None => return Err(format!("has several clouds ({}); name one", names())),
        };
        Entry { name, map: cloud }.read()
    }
}

/// A cloud, or its part `auth`.
struct Entry<'a> {
    name: &'a str,
    map: &'a Value,
}

impl Entry<'_> {
    fn read(&self) -> Result<Cloud, String> {
        let auth = Entry { name: &format!("{}.auth", self.name), map: &self.map["auth"] };
        let trust = self.trust()?;
        let identity = match self.text("auth_type")?.unwrap_or("password") {
            "none" => return Ok(Cloud { access: self.open()?, trust }),
            "password" | "v3password" => auth.password()?,
            "v3applicationcredential" => auth.application_credential()?,
            other => {
                let choice = "password, v3applicationcredential or none";
                return Err(format!("{}.auth_type: {other:?} is not served; use {choice}", self.name));
            }
        };
        let auth_url = auth.url("auth_url")?.ok_or_else(|| auth.missing("auth_url"))?;
        let interface = self.text("interface")?.or(self.text("endpoint_type")?).unwrap_or("public");
        let access = Access::Keystone {
            login: Box::new(Login { auth_url, identity }),
            region: self.text("region_name")?.map(str::to_owned),
            interface: interface.trim_end_matches("URL").to_owned(),
            network_endpoint: self.url(ENDPOINT)?,
        };
        Ok(Cloud { access, trust })
    }

    fn open(&self) -> Result<Access, String> {
        let missing = || format!("{}; without Keystone there is no catalog", self.missing(ENDPOINT));
        Ok(Access::Open { network_endpoint: self.url(ENDPOINT)?.ok_or_else(missing)? })
    }

    fn trust(&self) -> Result<Trust, String> {
        match (&self.map["verify"], self.text("cacert")?) {
            (Value::Bool(false), _) => Ok(Trust::Anybody),
            (Value::Null | Value::Bool(true), Some(file)) => Ok(Trust::File(file.into())),
            (Value::Null | Value::Bool(true), None) => Ok(Trust::Host),
            _ => Err(format!("{}.verify: must be true or false", self.name)),
        }
    }

    fn password(&self) -> Result<Identity, String> {
        let user = self.named("user", "user_id", "username")?.ok_or_else(|| self.missing("username"))?;
        let password = Secret::new(self.text("password")?.ok_or_else(|| self.missing("password"))?);
        let scope = match (self.text("system_scope")?, self.named("project", "project_id", "project_name")?) {
            (Some(_), None) => json!({"system": {"all": true}}),
            (None, Some(project)) => json!({"project": project}),
            (Some(_), Some(_)) => {
                return Err(format!("{}: has both a project and system_scope; leave out one", self.name));
            }
            (None, None) => return Err(self.missing("project_name")),
        };
        Ok(Identity::Password { user, password, scope })
    }

    fn application_credential(&self) -> Result<Identity, String> {
        let secret = "application_credential_secret";
        let secret = Secret::new(self.text(secret)?.ok_or_else(|| self.missing(secret))?);
        let id = self.text("application_credential_id")?;
        let credential = match (id, self.text("application_credential_name")?) {
            (Some(id), _) => json!({"id": id}),
            (None, Some(name)) => {
                let user = self.named("user", "user_id", "username")?;
                json!({"name": name, "user": user.ok_or_else(|| self.missing("username"))?})
            }
            (None, None) => return Err(self.missing("application_credential_id")),
        };
        Ok(Identity::ApplicationCredential { credential, secret })
    }

    /// Who or what has an identity, or a name in a domain.
    fn named(&self, what: &str, id_key: &str, name_key: &str) -> Result<Option<Value>, String> {
        if let Some(id) = self.text(id_key)? {
            return Ok(Some(json!({"id": id})));
        }
        let Some(name) = self.text(name_key)? else { return Ok(None) };
        let domain =
            match (self.text(&format!("{what}_domain_id"))?, self.text(&format!("{what}_domain_name"))?) {
                (Some(id), _) => json!({"id": id}),
                (None, Some(name)) => json!({"name": name}),
                (None, None) => json!({"id": DEFAULT_DOMAIN}),
            };
        Ok(Some(json!({"name": name, "domain": domain})))
    }

    fn text(&self, key: &str) -> Result<Option<&str>, String> {
        match &self.map[key] {
            Value::Null => Ok(None),
            Value::String(text) if !text.is_empty() => Ok(Some(text)),
            _ => Err(format!("{}.{key}: must be a text that is not empty; quote it", self.name)),
        }
    }

    /// A URL without anything that would be sent along, or taken for safe.
    fn url(&self, key: &str) -> Result<Option<Url>, String> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let url =
            Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| format!("{}.{key}: must be a URL with https, or http", self.name))?;
        if !url.username().is_empty()
            || url.password().is_some()
            || url.query().is_some()
            || url.fragment().is_some()
        {
            return Err(format!(
                "{}.{key}: must be scheme, host, port and path, and nothing else",
                self.name
            ));
        }
        Ok(Some(url))
    }

    fn missing(&self, key: &str) -> String {
        format!("{}.{key}: is missing", self.name)
    }
}

fn wrong(file: &Path, reason: &str) -> OpenStackError {
    OpenStackError::CloudsFile { file: file.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keystone(cloud: Cloud) -> (Login, Option<String>, String) {
        match cloud.access {
            Access::Keystone { login, region, interface, .. } => (*login, region, interface),
            Access::Open { .. } => panic!("{cloud:?}"),
        }
    }

    fn password(more: &str) -> String {
        format!(
            "clouds:\n  c:\n    region_name: r1\n    auth:\n      auth_url: https://k.example.org:5000/v3\n      \
             username: farrier\n      password: oats and hay\n{more}"
        )
    }

    #[test]
    fn a_cloud_says_who_asks_and_for_what() {
        for (more, user, scope) in [
            (
                "      project_name: service\n",
                json!({"name": "farrier", "domain": {"id": "default"}}),
                json!({"project": {"name": "service", "domain": {"id": "default"}}}),
            ),
            (
                "      project_id: p1\n      user_domain_name: Horses\n",
                json!({"name": "farrier", "domain": {"name": "Horses"}}),
                json!({"project": {"id": "p1"}}),
            ),
            (
                "      system_scope: all\n      user_domain_id: d1\n",
                json!({"name": "farrier", "domain": {"id": "d1"}}),
                json!({"system": {"all": true}}),
            ),
        ] {
            let cloud = Cloud::parse(&password(more), Some("c")).unwrap();
            assert!(!format!("{cloud:?}").contains("oats"), "{cloud:?}");
            let (login, region, interface) = keystone(cloud);
            assert_eq!((region.as_deref(), interface.as_str()), (Some("r1"), "public"));
            let request = login.identity.request();
            assert_eq!(request["auth"]["identity"]["password"]["user"]["name"], user["name"]);
            assert_eq!(request["auth"]["identity"]["password"]["user"]["domain"], user["domain"]);
            assert_eq!(request["auth"]["identity"]["password"]["user"]["password"], "oats and hay");
            assert_eq!(request["auth"]["scope"], scope);
        }
    }

    #[test]
    fn an_application_credential_has_the_scope_of_its_own() {
        let text = "clouds:\n  c:\n    auth_type: v3applicationcredential\n    interface: internalURL\n    verify: false\n    \
                    auth: {auth_url: 'http://k', application_credential_id: a1, application_credential_secret: oats}\n";
        let cloud = Cloud::parse(text, None).unwrap();
        assert_eq!(cloud.trust, Trust::Anybody);
        let (login, _, interface) = keystone(cloud);
        assert_eq!(interface, "internal");
        let request = login.identity.request();
        assert_eq!(
            request,
            json!({"auth": {"identity": {"methods": ["application_credential"],
                "application_credential": {"id": "a1", "secret": "oats"}}}})
        );
    }

    #[test]
    fn what_is_missing_or_wrong_is_named_and_no_secret_is_shown() {
        let credential = |rest: &str| {
            format!(
                "clouds: {{c: {{auth_type: v3applicationcredential, auth: {{auth_url: 'http://k', {rest}}}}}}}"
            )
        };
        for (text, expected) in [
            ("clouds: [".to_owned(), "is no YAML"),
            ("password: oats and hay\n".to_owned(), "has no map `clouds`"),
            ("clouds: {d: {}}".to_owned(), "has no cloud \"c\"; it has: d"),
            (password(""), "c.auth.project_name: is missing"),
            (password("      project_id: 5\n"), "c.auth.project_id: must be a text"),
            (
                password("      project_id: p\n      system_scope: all\n"),
                "has both a project and system_scope",
            ),
            ("clouds: {c: {auth_type: v2password}}".to_owned(), "c.auth_type: \"v2password\" is not served"),
            ("clouds: {c: {auth_type: none}}".to_owned(), "c.network_endpoint_override: is missing"),
            (
                "clouds: {c: {auth_type: none, network_endpoint_override: 'ftp://h'}}".to_owned(),
                "c.network_endpoint_override: must be a URL",
            ),
            (
                "clouds: {c: {auth_type: none, network_endpoint_override: 'http://a:oats@h'}}".to_owned(),
                "must be scheme, host, port and path",
            ),
            (
                "clouds: {c: {auth_type: none, network_endpoint_override: 'http://h', verify: 'no'}}"
                    .to_owned(),
                "c.verify: must be true or false",
            ),
            (credential("application_credential_id: a"), "application_credential_secret: is missing"),
            (credential("application_credential_secret: oats"), "application_credential_id: is missing"),
            (
                credential("application_credential_name: a, application_credential_secret: oats"),
                "c.auth.username: is missing",
            ),
        ] {
            let reason = Cloud::parse(&text, Some("c")).unwrap_err();
            assert!(reason.contains(expected) && !reason.contains("oats"), "{reason}");
        }
        let several = Cloud::parse("clouds: {c: {}, d: {}}", None).unwrap_err();
        assert_eq!(several, "has several clouds (c, d); name one");
        let error = Cloud::load(Path::new("/nonexistent/clouds.yaml"), None).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent/clouds.yaml: "), "{error}");
    }
}
