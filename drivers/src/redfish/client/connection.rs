//! How a BMC is reached, as `driver_info` of its node says (section 9.3).

use super::trust::Trust;
use crate::client::secret::Secret;
use farrier_conductor::interfaces::{InterfaceError, Properties};
use farrier_conductor::model::Node;
use reqwest::Url;
use serde_json::Value;

/// The keys of `driver_info` that say it.
pub(in crate::redfish) const KEYS: Properties = &[
    ("redfish_address", "URL of the BMC without a path, https unless it says otherwise; required"),
    (
        "redfish_system_id",
        "path of the machine there, as /redfish/v1/Systems/1; needed where there are several",
    ),
    ("redfish_username", "user of the BMC; none unless it is given"),
    ("redfish_password", "password of that user"),
    (
        "redfish_verify_ca",
        "true: the BMC's certificate has to be from an authority that this host trusts; a file or folder: from one that \
         is there; false: every certificate is accepted; true unless it is given",
    ),
    (
        "redfish_auth_type",
        "session, basic, or auto: sessions, and basic where the BMC has none; auto unless it is given",
    ),
];

/// How a user proves to be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::redfish) enum AuthType {
    /// By sessions, where the BMC has them.
    Auto,
    /// By sessions.
    Session,
    /// With each request.
    Basic,
}

/// A user of a BMC.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::redfish) struct Login {
    pub(in crate::redfish) user: String,
    pub(in crate::redfish) password: Secret,
    pub(in crate::redfish) auth_type: AuthType,
}

/// How a BMC is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::redfish) struct Connection {
    /// Scheme, host and port.
    pub(in crate::redfish) address: Url,
    pub(in crate::redfish) login: Option<Login>,
    pub(in crate::redfish) trust: Trust,
}

/// The machine of a node, at its BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::redfish) struct Description {
    pub(in crate::redfish) connection: Connection,
    /// Path of the machine; nothing where it is the only one.
    pub(in crate::redfish) system: Option<String>,
}

impl Description {
    /// Reads `driver_info`.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::DriverInfo`] for the first key that is missing or unusable.
    pub(in crate::redfish) fn read(node: &Node) -> Result<Self, InterfaceError> {
        let text = |key: &'static str| {
            let read = node.driver_info.text(key);
            read.map_err(|error| InterfaceError::driver_info(key, error.reason))
        };
        let address = text("redfish_address")?.ok_or_else(|| {
            InterfaceError::driver_info("redfish_address", "is missing; give the BMC's URL")
        })?;
        let auth_type = match text("redfish_auth_type")? {
            None | Some("auto") => AuthType::Auto,
            Some("session") => AuthType::Session,
            Some("basic") => AuthType::Basic,
            Some(_) => return wrong("redfish_auth_type", "must be auto, session or basic"),
        };
        let login = match (text("redfish_username")?, text("redfish_password")?) {
            (None, None) => None,
            (Some(user), password) => {
                let password = Secret::new(password.unwrap_or_default());
                Some(Login { user: user.to_owned(), password, auth_type })
            }
            (None, Some(_)) => return wrong("redfish_username", "is missing; there is a password"),
        };
        let trust = trust(node)?;
        // Clients that know none send an empty one.
        let is_named = node.driver_info.get("redfish_system_id").is_some_and(|path| path != "");
        let system = if is_named { text("redfish_system_id")?.map(str::to_owned) } else { None };
        if system.as_ref().is_some_and(|path| !path.starts_with('/') || path.starts_with("//")) {
            return wrong("redfish_system_id", "must be a path, as /redfish/v1/Systems/1");
        }
        Ok(Self { connection: Connection { address: parse(address)?, login, trust }, system })
    }
}

fn trust(node: &Node) -> Result<Trust, InterfaceError> {
    let key = "redfish_verify_ca";
    match node.driver_info.get(key) {
        Some(Value::String(path)) if path.starts_with('/') => Ok(Trust::of_files(path.as_ref())),
        _ => match node.driver_info.flag(key) {
            Ok(verifies) => Ok(if verifies.unwrap_or(true) { Trust::Host } else { Trust::Anybody }),
            Err(_) => wrong(key, "must be true, false, or the absolute path of a file or folder"),
        },
    }
}

/// Scheme, host and port, and nothing else: whatever else a URL can hold would be sent to the BMC, or be taken for safe.
fn parse(text: &str) -> Result<Url, InterfaceError> {
    let key = "redfish_address";
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let Ok(url) = Url::parse(&with_scheme) else { return wrong(key, "must be a URL or a host") };
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return wrong(key, "must be a URL with https, or http, and a host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong(key, "must hold no credentials; give redfish_username and redfish_password");
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return wrong(key, "must have no path; the machine's is redfish_system_id");
    }
    Ok(url)
}

fn wrong<T>(key: &str, reason: &str) -> Result<T, InterfaceError> {
    Err(InterfaceError::driver_info(key, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::NewNode;
    use farrier_conductor::model::clock::{Clock, SystemClock};
    use serde_json::json;

    fn read(info: &Value) -> Result<Description, String> {
        let driver_info = info.as_object().unwrap().clone().into();
        let node = Node::enrol(NewNode { driver_info, ..NewNode::default() }, SystemClock.now());
        Description::read(&node).map_err(|error| error.to_string())
    }

    #[test]
    fn addresses_are_hosts_and_nothing_else() {
        for (address, expected) in [
            ("192.0.2.5", Ok("https://192.0.2.5/")),
            ("[2001:db8::5]:8443", Ok("https://[2001:db8::5]:8443/")),
            ("https://bmc.example.org/", Ok("https://bmc.example.org/")),
            ("http://127.0.0.1:8000", Ok("http://127.0.0.1:8000/")),
            ("https://admin:oats@192.0.2.5", Err("must hold no credentials")),
            ("https://192.0.2.5/redfish/v1", Err("must have no path")),
            ("https://192.0.2.5?x=1", Err("must have no path")),
            ("ftp://192.0.2.5", Err("must be a URL with https")),
            ("https://", Err("must be a URL")),
        ] {
            match (expected, read(&json!({"redfish_address": address}))) {
                (Ok(url), Ok(found)) => assert_eq!(found.connection.address.as_str(), url),
                (Err(part), Err(error)) => assert!(error.contains(part), "{error}"),
                (_, found) => panic!("{address}: {found:?}"),
            }
        }
    }

    #[test]
    fn certificates_are_verified_unless_that_is_forbidden_in_so_many_words() {
        for (value, expected) in [
            (json!(null), Ok(Trust::Host)),
            (json!("True"), Ok(Trust::Host)),
            (json!(false), Ok(Trust::Anybody)),
            (json!("no"), Ok(Trust::Anybody)),
            (json!("/nonexistent/ca.pem"), Ok(Trust::of_files("/nonexistent/ca.pem".as_ref()))),
            (json!("ca.pem"), Err("driver_info redfish_verify_ca: must be true, false")),
            (json!(["/ca.pem"]), Err("driver_info redfish_verify_ca: must be true, false")),
        ] {
            let found = read(&json!({"redfish_address": "h", "redfish_verify_ca": value}));
            match (expected, found) {
                (Ok(trust), Ok(found)) => assert_eq!(found.connection.trust, trust),
                (Err(part), Err(error)) => assert!(error.starts_with(part), "{error}"),
                (_, found) => panic!("{value}: {found:?}"),
            }
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_named_and_secrets_do_not_print() {
        for (more, part) in [
            (json!({"redfish_address": null}), "driver_info redfish_address: is missing"),
            (json!({"redfish_auth_type": "digest"}), "driver_info redfish_auth_type: must be"),
            (json!({"redfish_password": "oats"}), "driver_info redfish_username: is missing"),
            (json!({"redfish_system_id": "1"}), "driver_info redfish_system_id: must be a path"),
            (json!({"redfish_system_id": "//evil/1"}), "driver_info redfish_system_id: must be a path"),
        ] {
            let mut info = json!({"redfish_address": "h"});
            info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert!(read(&info).unwrap_err().starts_with(part), "{more}");
        }
        let found =
            read(&json!({"redfish_address": "h", "redfish_username": "a", "redfish_password": "oats"}));
        assert!(!format!("{found:?}").contains("oats"));
    }
}
