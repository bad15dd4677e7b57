//! Exporting the root disk by iSCSI (section 4.4).

use crate::agent::Agent;
use crate::commands::errors::from_iscsi;
use crate::commands::{Command, JsonType, Kind, Parameter, Params};
use crate::deployment::export;
use farrier_iscsi::target::{Chap, IscsiName, Terms};
use farrier_protocol::error::{CommandError, ErrorKind};
use serde_json::{Value, json};
use std::sync::Arc;

/// Commands of the `iscsi` extension. Conductors of section 4.4 wait for the reply, which has the result then; others
/// need not.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "start_iscsi_target",
        help: "Exports the root disk as logical unit 1 of an iSCSI target",
        kind: Kind::Async,
        parameters: &[
            Parameter::optional(
                "iqn",
                TEXT,
                "Name of the target; iqn.2008-10.org.openstack: and the node's UUID",
            ),
            Parameter::optional("portal_port", &[JsonType::Integer, JsonType::Null], "TCP port; 3260")
                .described_by(|| json!({"minimum": 1, "maximum": 65535})),
            Parameter::optional("wipe_disk_metadata", FLAG, "Wipe partition tables and signatures first"),
            Parameter::optional("read_only", FLAG, "Export the disk read-only"),
            Parameter::optional("chap_user", TEXT, "CHAP user of the initiators"),
            Parameter::optional("chap_password", TEXT, "CHAP secret of that user, at least 12 characters"),
            Parameter::optional(
                "initiators",
                &[JsonType::Array, JsonType::Null],
                "Names of the initiators that may log in; all may if it is unset",
            )
            .described_by(
                || json!({"minItems": 1, "maxItems": MOST_INITIATORS, "items": {"type": "string"}}),
            ),
        ],
        validate: Some(|params| terms(params, "iqn.2008-10.org.openstack:node").map(drop)),
        run: start_iscsi_target,
    },
    Command {
        name: "stop_iscsi_target",
        help: "Ends the export, closes its sessions and frees the disk",
        kind: Kind::Async,
        parameters: &[],
        validate: None,
        run: |agent, _| export::stop(agent).map(|target| target.map_or(Value::Null, answer)),
    },
];

const TEXT: &[JsonType] = &[JsonType::String, JsonType::Null];
const FLAG: &[JsonType] = &[JsonType::Boolean, JsonType::Null];
/// Port of a target that is given none.
const PORT: u16 = 3260;
/// Most initiators that are let in by name.
const MOST_INITIATORS: usize = 64;

fn start_iscsi_target(agent: &Arc<Agent>, params: &Params) -> Result<Value, CommandError> {
    // This command does not bring the newest record of the node along.
    agent.refresh_node_without_hints();
    let default = format!("iqn.2008-10.org.openstack:{}", agent.node()?.uuid);
    let terms = terms(params, &default)?;
    export::start(agent, &terms)?;
    Ok(answer(terms.target.to_string()))
}

fn answer(target: String) -> Value {
    json!({"iscsi_target_iqn": target})
}

/// What the parameters ask for.
///
/// # Errors
///
/// One of them is wrong, or they contradict each other.
fn terms(params: &Params, default: &str) -> Result<Terms, CommandError> {
    let text = |name: &str| params.get(name).and_then(Value::as_str);
    let flag = |name: &str| params.get(name).and_then(Value::as_bool).unwrap_or(false);
    let (read_only, wiped) = (flag("read_only"), flag("wipe_disk_metadata"));
    if read_only && wiped {
        return Err(refused("wipe_disk_metadata and read_only contradict each other: leave one of them out"));
    }
    let chap = match (text("chap_user"), text("chap_password")) {
        (None, None) => None,
        (Some(user), Some(secret)) => Some(Chap::new(user, secret).map_err(from_iscsi)?),
        _ => return Err(refused("chap_user and chap_password go together: give both, or none")),
    };
    let target = IscsiName::parse("iqn", text("iqn").unwrap_or(default)).map_err(from_iscsi)?;
    let port = port(params.get("portal_port").unwrap_or(&Value::Null))?;
    let initiators = initiators(params.get("initiators").and_then(Value::as_array))?;
    Ok(Terms { target, port, read_only, wiped, chap, initiators })
}

fn port(given: &Value) -> Result<u16, CommandError> {
    if given.is_null() {
        return Ok(PORT);
    }
    let port = given.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
    port.ok_or_else(|| refused("portal_port must be 1 to 65535"))
}

/// An empty list is a mistake, because it would let in every initiator.
fn initiators(listed: Option<&Vec<Value>>) -> Result<Vec<IscsiName>, CommandError> {
    let Some(listed) = listed else { return Ok(Vec::new()) };
    if listed.is_empty() || listed.len() > MOST_INITIATORS {
        let most = MOST_INITIATORS;
        return Err(refused(&format!(
            "initiators must name 1 to {most}; without it, every initiator may log in"
        )));
    }
    let mut initiators = Vec::new();
    for one in listed {
        let name = one.as_str().ok_or_else(|| refused("initiators must be texts"))?;
        let name = IscsiName::parse("initiators", name).map_err(from_iscsi)?;
        if !initiators.contains(&name) {
            initiators.push(name);
        }
    }
    Ok(initiators)
}

fn refused(details: &str) -> CommandError {
    CommandError::new(ErrorKind::InvalidCommandParamsError, details)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IQN: &str = "iqn.2008-10.org.openstack:1be26c0b-03f2-4d2e-ae87-c02d7f33c123";
    const HOST: &str = "iqn.2026-01.org.example:host";

    fn start() -> &'static Command {
        &COMMANDS[0]
    }

    fn params(value: Value) -> Params {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_parameters_of_the_contract_and_none_at_all_are_enough() {
        let plain = Terms {
            target: IscsiName::parse("iqn", IQN).unwrap(),
            port: 3260,
            read_only: false,
            wiped: false,
            chap: None,
            initiators: Vec::new(),
        };
        let host = || IscsiName::parse("initiators", HOST).unwrap();
        for (given, expected) in [
            (json!({}), plain.clone()),
            (json!({"iqn": null, "portal_port": null, "wipe_disk_metadata": null}), plain.clone()),
            (
                json!({"iqn": HOST, "portal_port": 3999, "wipe_disk_metadata": true}),
                Terms { target: host(), port: 3999, wiped: true, ..plain.clone() },
            ),
            (
                json!({"read_only": true, "initiators": [HOST, HOST], "chap_user": "ann",
                    "chap_password": "correct-horse"}),
                Terms {
                    read_only: true,
                    initiators: vec![host()],
                    chap: Some(Chap::new("ann", "correct-horse").unwrap()),
                    ..plain
                },
            ),
        ] {
            let given = params(given);
            start().check_names(&given).unwrap();
            start().check_values(&given).unwrap();
            assert_eq!(terms(&given, IQN).unwrap(), expected);
        }
    }

    #[test]
    fn bad_parameters_are_refused_before_the_disk_is_looked_for() {
        for (given, told) in [
            (json!({"iqn": "disk"}), "no iSCSI name"),
            (json!({"iqn": "iqn.2008-10.org/../../core:x"}), "other characters"),
            (json!({"iqn": 1}), "iqn must be of type string or null"),
            (json!({"portal_port": 0}), "portal_port must be 1 to 65535"),
            (json!({"portal_port": 65536}), "portal_port must be 1 to 65535"),
            (json!({"portal_port": -1}), "portal_port must be 1 to 65535"),
            (json!({"portal_port": 3260.5}), "portal_port must be of type integer or null"),
            (json!({"portal_port": "3260"}), "portal_port must be of type integer or null"),
            (json!({"read_only": true, "wipe_disk_metadata": true}), "contradict"),
            (json!({"chap_user": "ann"}), "go together"),
            (json!({"chap_password": "correct-horse"}), "go together"),
            (json!({"chap_user": "ann", "chap_password": "short"}), "chap_password: must be 12"),
            (json!({"initiators": []}), "must name 1 to 64"),
            (json!({"initiators": vec![HOST; 65]}), "must name 1 to 64"),
            (json!({"initiators": [1]}), "must be texts"),
            (json!({"initiators": ["*"]}), "initiators: "),
        ] {
            let error = start().check_values(&params(given.clone())).unwrap_err();
            assert_eq!((error.code, error.kind.as_str()), (400, "InvalidCommandParamsError"), "{given}");
            assert!(error.details.contains(told), "{given}: {}", error.details);
        }
        let unknown = start().check_names(&params(json!({"portal": 1}))).unwrap_err();
        assert!(unknown.details.contains("portal"), "{}", unknown.details);
    }
}
