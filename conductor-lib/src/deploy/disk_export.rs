//! The root disk of a machine, exported by its agent by iSCSI (section 4.4 of the agent's contract): what a deployment
//! and an operator order alike.
//!
//! Each export has a name, an allow-list and a secret of its own, so that the initiator that logs in by them reaches the disk that
//! was just exported, and nobody else reaches it.

use crate::error::Error;
use crate::interfaces::InterfaceError;
use crate::model::{Node, NotedExport};
use crate::task::Task;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;
use time::OffsetDateTime;
use url::Url;
use uuid::Uuid;

/// The key of `driver_info` with the port at which a machine exports its disk.
pub const PORT_KEY: &str = "iscsi_portal_port";
/// The port where a node says nothing else (`[iscsi]portal_port`).
const PORT: u16 = 3260;
/// What the name of a target begins with.
const PREFIX: &str = "iqn.2008-10.org.openstack:";
/// The user that initiators prove to be.
const USER: &str = "conductor";

/// The port at which the machine of a node exports its disk.
///
/// # Errors
///
/// [`InterfaceError::DriverInfo`] when its `driver_info` has something else than a port.
pub fn portal_port(node: &Node) -> Result<u16, InterfaceError> {
    let given = match node.driver_info.get(PORT_KEY) {
        None | Some(Value::Null) => return Ok(PORT),
        Some(Value::String(text)) => text.parse().ok(),
        Some(other) => other.as_u64().and_then(|port| u16::try_from(port).ok()),
    };
    let port = given.filter(|port| *port > 0);
    port.ok_or_else(|| InterfaceError::driver_info(PORT_KEY, "must be a port from 1 to 65535"))
}

/// Address or name of a machine, and a port of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Portal {
    host: String,
    port: u16,
}

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
            true => Ok(Self { host: host.to_owned(), port }),
            false => {
                Err(Error::invalid("agent_url", format!("{host:?} is no host that could be logged in to")))
            }
        }
    }

    /// The address or name, without brackets.
    pub fn address(&self) -> &str {
        self.host.trim_matches(['[', ']'])
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Portal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A disk that is exported, as an initiator needs to know it. No other host knows its name and its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskExport {
    /// Where the target listens.
    pub portal: Portal,
    /// Name of the target.
    pub target: String,
    /// Name of the only initiator that may log in.
    pub initiator: String,
    /// The user that it proves to be (CHAP).
    pub chap_user: String,
    /// The secret by which it does, which nothing shows.
    pub chap_password: String,
}

/// What may be done with a disk that is exported, and what is done before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It may be written to; what is on it is untouched.
    Write,
    /// The same, once its partition tables and signatures are wiped.
    WriteWiped,
    /// It may only be read.
    Read,
}

impl DiskExport {
    /// The disk of a node, exported by the agent at this URL, at this port: with a new name and a new secret.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] when the URL has no host.
    pub fn anew(agent_url: &str, port: u16, node: Uuid) -> Result<Self, Error> {
        let url = Url::parse(agent_url).ok();
        let portal = Portal::new(url.as_ref().and_then(Url::host_str).unwrap_or_default(), port)?;
        let [target, initiator, secret] = [(); 3].map(|()| Uuid::new_v4().simple().to_string());
        Ok(Self {
            portal,
            target: format!("{PREFIX}{node}.{target}"),
            initiator: format!("{PREFIX}conductor.{initiator}"),
            chap_user: USER.to_owned(),
            chap_password: secret,
        })
    }

    /// Has the agent of the node begin it, and waits until it has.
    ///
    /// # Errors
    ///
    /// [`Error::Agent`]; [`Error::Host`] when the lease is lost.
    pub async fn start(&self, task: &Task, access: Access) -> Result<(), Error> {
        let params = self.params(access);
        Ok(task.agent().await?.run_polled("iscsi.start_iscsi_target", params).await.map(drop)?)
    }

    /// Parameters of the command that begins it.
    fn params(&self, access: Access) -> Value {
        json!({
            "iqn": self.target,
            "portal_port": self.portal.port,
            "wipe_disk_metadata": access == Access::WriteWiped,
            "read_only": access == Access::Read,
            "chap_user": self.chap_user,
            "chap_password": self.chap_password,
            "initiators": [self.initiator],
        })
    }

    /// The note of it.
    pub fn noted(&self, since: OffsetDateTime) -> NotedExport {
        NotedExport { target: self.target.clone(), portal: self.portal.to_string(), since }
    }
}

/// Has the agent of the node end what it exports, if it does, and waits until it has.
///
/// # Errors
///
/// As [`DiskExport::start`].
pub async fn stop(task: &Task) -> Result<(), Error> {
    Ok(task.agent().await?.run_polled("iscsi.stop_iscsi_target", json!({})).await.map(drop)?)
}

impl fmt::Debug for DiskExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (portal, target) = (&self.portal, &self.target);
        f.debug_struct("DiskExport").field("portal", portal).field("target", target).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_export_has_a_name_and_a_secret_of_its_own() {
        for (url, portal, address) in [
            ("https://192.0.2.17:9999", Some("192.0.2.17:3260"), "192.0.2.17"),
            ("https://[2001:db8::7]:9999", Some("[2001:db8::7]:3260"), "2001:db8::7"),
            ("https://horse.example:9999", Some("horse.example:3260"), "horse.example"),
            ("https://h,filename=/dev/sda:9999", None, ""),
            ("https://h,x=y:9999", None, ""),
            ("data:x", None, ""),
            ("", None, ""),
        ] {
            let export = DiskExport::anew(url, 3260, Uuid::nil());
            let found = export.as_ref().ok().map(|export| export.portal.to_string());
            assert_eq!(found.as_deref(), portal, "{url:?}");
            let Ok(export) = export else { continue };
            assert_eq!((export.portal.address(), export.portal.port()), (address, 3260));
            let other = DiskExport::anew(url, 3260, Uuid::nil()).unwrap();
            assert!(export.target != other.target && export.initiator != other.initiator);
            assert!(export.chap_password != other.chap_password);
            assert!(export.target.starts_with("iqn.2008-10.org.openstack:00000000-"));
            assert!(!format!("{export:?}").contains(&export.chap_password));
        }
    }

    #[test]
    fn the_agent_is_told_who_may_do_what() {
        let export = DiskExport::anew("https://192.0.2.17:9999", 3999, Uuid::nil()).unwrap();
        for (access, read_only, wiped) in
            [(Access::Write, false, false), (Access::WriteWiped, false, true), (Access::Read, true, false)]
        {
            let params = export.params(access);
            assert_eq!(
                (&params["read_only"], &params["wipe_disk_metadata"]),
                (&read_only.into(), &wiped.into())
            );
            assert_eq!(params["portal_port"], 3999);
            assert_eq!(params["initiators"], json!([export.initiator]));
            assert_eq!(params["chap_password"], json!(export.chap_password));
        }
    }
}
