//! An exported disk as initiators reach it.

use super::error::IscsiError;
use farrier_conductor::Error;
use farrier_disk::iscsi_target::{Chap, IscsiName};
use reqwest::Url;
use serde_json::{Value, json};
use std::fmt;
use uuid::Uuid;

/// What the name of a target begins with (section 4.4).
const PREFIX: &str = "iqn.2008-10.org.openstack:";

/// Address or name of a machine, and a port of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Portal(String);

impl Portal {
    /// The port of a host, as URLs have it: an IPv6 address in brackets. An agent says what its host is, so whatever
    /// could be taken for more than that is refused.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] when it is no address and no name.
    pub fn new(host: &str, port: u16) -> Result<Self, Error> {
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
        match !host.is_empty() && host.bytes().all(is_host) {
            true => Ok(Self(format!("{host}:{port}"))),
            false => {
                Err(Error::invalid("agent_url", format!("{host:?} is no host that could be logged in to")))
            }
        }
    }
}

impl fmt::Display for Portal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A disk that is exported for one deployment: nobody else knows its name and its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogicalUnit {
    /// Where the target listens.
    pub portal: Portal,
    /// Name of the target.
    pub target: IscsiName,
    /// Name of the initiator.
    pub initiator: IscsiName,
    /// By what the initiator proves itself.
    pub chap: Chap,
}

impl LogicalUnit {
    /// The disk of a node, exported by the agent at this URL, at this port: with a name and a secret made anew.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] when the URL has no host.
    pub fn anew(agent_url: &str, port: u16, node: Uuid) -> Result<Self, Error> {
        let url = Url::parse(agent_url).ok();
        let portal = Portal::new(url.as_ref().and_then(Url::host_str).unwrap_or_default(), port)?;
        let [target, initiator, secret] = [(); 3].map(|()| Uuid::new_v4().simple().to_string());
        let made = || -> Result<Self, farrier_disk::Error> {
            Ok(Self {
                portal,
                target: IscsiName::parse("iqn", &format!("{PREFIX}{node}.{target}"))?,
                initiator: IscsiName::parse("initiators", &format!("{PREFIX}conductor.{initiator}"))?,
                chap: Chap::new("conductor", &secret)?,
            })
        };
        made().map_err(|error| IscsiError::from(error).into())
    }

    /// Parameters of the command that exports it.
    pub(super) fn params(&self, port: u16, wipes: bool) -> Value {
        json!({
            "iqn": self.target.to_string(),
            "portal_port": port,
            "wipe_disk_metadata": wipes,
            "chap_user": self.chap.user,
            "chap_password": self.chap.secret,
            "initiators": [self.initiator.to_string()],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_export_has_a_name_and_a_secret_of_its_own() {
        for (url, portal) in [
            ("https://192.0.2.17:9999", Some("192.0.2.17:3260")),
            ("https://[2001:db8::7]:9999", Some("[2001:db8::7]:3260")),
            ("https://horse.example:9999", Some("horse.example:3260")),
            ("https://h,filename=/dev/sda:9999", None),
            ("https://h,x=y:9999", None),
            ("data:x", None),
            ("", None),
        ] {
            let unit = LogicalUnit::anew(url, 3260, Uuid::nil());
            assert_eq!(unit.as_ref().ok().map(|unit| unit.portal.to_string()).as_deref(), portal, "{url:?}");
            let Ok(unit) = unit else { continue };
            let other = LogicalUnit::anew(url, 3260, Uuid::nil()).unwrap();
            assert!(
                unit.target != other.target && unit.chap != other.chap && unit.initiator != other.initiator
            );
            assert!(unit.target.to_string().starts_with("iqn.2008-10.org.openstack:00000000-"));
            assert!(!format!("{unit:?}").contains(&unit.chap.secret));
        }
    }
}
