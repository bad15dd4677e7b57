//! What an agent signs when it has erased disks: a certificate for each, and a statement for the machine.

use super::commands::{Agent, Outcome};
use super::inventory;
use farrier_protocol::error::{CommandError, ErrorKind};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The version of what is signed.
const VERSION: u32 = 2;

/// The result of a step that has erased all disks.
pub(super) fn proof(agent: &Agent, name: &str, step: &Value) -> Outcome {
    let now = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
    let common = || {
        let node = &agent.found.node;
        json!({"version": VERSION, "node": node, "step": name, "nonce": step["nonce"], "finished_at": now})
    };
    let (mut result, mut examined) = (Map::new(), Vec::new());
    for disk in inventory::disks(&agent.machine) {
        let brief = json!({
            "device": disk.name, "serial": disk.serial, "wwn": disk.wwn, "size_bytes": disk.size, "verdict": "erased",
        });
        let more = json!({
            "vendor": disk.vendor, "model": disk.model, "method": "ata-sanitize-crypto", "reason": null,
            "capabilities": {}, "unanswered": [], "samples": 64, "started_at": now,
            "attempts": [{"method": "ata-sanitize-crypto", "error": null}],
        });
        let statement = with(with(common(), brief.clone()), more);
        result.insert(disk.name, signed(agent, statement)?);
        examined.push(brief);
    }
    let machine = json!({
        "disks": examined, "examined": ["0000:00:17.0: ahci"], "not_seen": [], "not_examined": [],
        "without_driver": [],
    });
    result.insert("machine".to_owned(), signed(agent, with(common(), machine))?);
    Ok(Value::Object(result))
}

/// An object with the keys of another one too.
fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

/// A statement, and what proves it.
fn signed(agent: &Agent, statement: Value) -> Outcome {
    let certificate = agent.identity.sign(&statement);
    let certificate = certificate
        .map_err(|error| CommandError::new(ErrorKind::CommandExecutionError, error.to_string()))?;
    Ok(with(statement, json!({"certificate": certificate})))
}
