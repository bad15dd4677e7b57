//! The keys of `driver_info` by which an iLO is reached, and those of Redfish for the same.

use farrier_conductor::interfaces::{InterfaceError, Properties};
use farrier_conductor::model::Node;
use serde_json::{Value, json};

/// The keys that say it.
pub(super) const KEYS: Properties = &[
    ("ilo_address", "address or name of the iLO; required"),
    ("ilo_username", "user of the iLO; required"),
    ("ilo_password", "password of that user; required"),
    ("client_port", "its port; 443 unless it is given"),
    (
        "ilo_verify_ca",
        "true: the iLO's certificate has to be from an authority that this host trusts; a file or folder: from one that \
         is there; false: every certificate is accepted; true unless it is given",
    ),
];

/// Each key, and the key of Redfish for the same.
const REDFISH_KEYS: &[(&str, &str)] = &[
    ("ilo_address", "redfish_address"),
    ("ilo_username", "redfish_username"),
    ("ilo_password", "redfish_password"),
    ("ilo_verify_ca", "redfish_verify_ca"),
];

/// An error of Redfish that names the keys of iLO.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct WithIloKeys(String);

/// A node as Redfish takes it.
///
/// # Errors
///
/// [`InterfaceError::DriverInfo`] for the first key that is missing or unusable.
pub(super) fn as_redfish(node: &Node) -> Result<Node, InterfaceError> {
    let mut redfish = node.clone();
    for (ours, theirs) in REDFISH_KEYS {
        match node.driver_info.get(*ours) {
            Some(value) => drop(redfish.driver_info.insert((*theirs).to_owned(), value.clone())),
            None => drop(redfish.driver_info.remove(*theirs)),
        }
    }
    for key in ["ilo_username", "ilo_password"] {
        if node.driver_info.get(key).is_none_or(Value::is_null) {
            return Err(InterfaceError::driver_info(key, "is missing; give the user of the iLO"));
        }
    }
    let text = |key: &'static str| {
        let read = node.driver_info.text(key);
        read.map_err(|error| InterfaceError::driver_info(key, error.reason))
    };
    let address = text("ilo_address")?;
    let address = address
        .ok_or_else(|| InterfaceError::driver_info("ilo_address", "is missing; give the iLO's address"))?;
    if let Some(port) = port(node)? {
        let host = if address.contains(':') && !address.contains(['[', '/']) {
            format!("[{address}]")
        } else {
            address.to_owned()
        };
        redfish.driver_info.insert("redfish_address".to_owned(), json!(format!("{host}:{port}")));
    }
    Ok(redfish)
}

fn port(node: &Node) -> Result<Option<u16>, InterfaceError> {
    let wrong = || InterfaceError::driver_info("client_port", "must be the number of a port");
    let number = match node.driver_info.get("client_port") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::String(text)) => text.clone(),
        Some(_) => return Err(wrong()),
    };
    number.parse().map(Some).map_err(|_| wrong())
}

/// An error of Redfish about a node, which names the keys that the node has.
pub(super) fn of_ilo(error: InterfaceError) -> InterfaceError {
    let ours = |text: &str| {
        REDFISH_KEYS.iter().fold(text.to_owned(), |text, (ours, theirs)| text.replace(theirs, ours))
    };
    match error {
        InterfaceError::DriverInfo { key, reason } => {
            InterfaceError::DriverInfo { key: ours(&key), reason: ours(&reason) }
        }
        InterfaceError::Driver(error) => InterfaceError::driver(WithIloKeys(ours(&error.to_string()))),
        InterfaceError::NotAsked(error) => InterfaceError::not_asked(WithIloKeys(ours(&error.to_string()))),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::NewNode;
    use farrier_conductor::model::clock::{Clock, SystemClock};

    fn node(more: &Value) -> Node {
        let mut info = json!({"ilo_address": "192.0.2.5", "ilo_username": "a", "ilo_password": "oats"});
        info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let driver_info = info.as_object().unwrap().clone().into();
        Node::enrol(NewNode { driver_info, ..NewNode::default() }, SystemClock.now())
    }

    #[test]
    fn keys_are_turned_into_those_of_redfish() {
        for (more, expected) in [
            (json!({}), "192.0.2.5"),
            (json!({"client_port": 8443}), "192.0.2.5:8443"),
            (json!({"client_port": "8443", "ilo_address": "2001:db8::5"}), "[2001:db8::5]:8443"),
            (json!({"client_port": 8443, "ilo_address": "http://ilo"}), "http://ilo:8443"),
        ] {
            let node = as_redfish(&node(&more)).unwrap();
            assert_eq!(node.driver_info["redfish_address"], expected);
            assert_eq!(node.driver_info["redfish_password"], "oats");
        }
        // What of Redfish stands beside it is of another hardware type.
        let stray = as_redfish(&node(&json!({"redfish_verify_ca": false}))).unwrap();
        assert!(stray.driver_info.get("redfish_verify_ca").is_none());
    }

    #[test]
    fn errors_name_the_keys_of_the_ilo() {
        for (more, part) in [
            (json!({"ilo_password": null}), "driver_info ilo_password: is missing"),
            (json!({"ilo_address": null}), "driver_info ilo_address: is missing"),
            (json!({"client_port": "x"}), "driver_info client_port: must be the number"),
        ] {
            let error = as_redfish(&node(&more)).unwrap_err().to_string();
            assert!(error.starts_with(part), "{error}");
        }
        let error = of_ilo(InterfaceError::driver_info("redfish_verify_ca", "must be true")).to_string();
        assert_eq!(error, "driver_info ilo_verify_ca: must be true");
        let error = of_ilo(InterfaceError::driver(WithIloKeys(
            "change redfish_username and redfish_password".into(),
        )));
        assert_eq!(error.to_string(), "change ilo_username and ilo_password");
    }
}
