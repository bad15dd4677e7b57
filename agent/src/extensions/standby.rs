//! Writing an image and leaving the ramdisk (section 5).

use crate::agent::Agent;
use crate::commands::{Command, JsonType, Kind, Parameter, Params};
use crate::deployment::export;
use crate::life::clock;
use farrier_hardware::container::bootc::Order;
use farrier_linux::power::{self, Stop};
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::image_info::ImageInfo;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Commands of the `standby` extension.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "prepare_image",
        help: "Writes an image and a config drive to the root disk",
        kind: Kind::Async,
        parameters: &[
            Parameter::required("image_info", &[JsonType::Object], "Image: id, urls, checksum and format")
                .described_by(image_info_schema),
            Parameter::optional(
                "configdrive",
                &[JsonType::String, JsonType::Null],
                "Config drive as base64 text of a gzip file, or its URL",
            ),
        ],
        validate: Some(|params| ImageInfo::from_params(&params["image_info"]).map(drop)),
        run: prepare_image,
    },
    Command {
        name: "execute_bootc_install",
        help: "Installs a bootc image on the root disk",
        kind: Kind::Async,
        parameters: &[
            Parameter::required(
                "image_source",
                &[JsonType::String],
                "Image: oci://registry/path with a tag or digest",
            ),
            Parameter::optional(
                "instance_info",
                &[JsonType::Object, JsonType::Null],
                "instance_info of the node",
            ),
            Parameter::optional(
                "pull_secret",
                &[JsonType::String, JsonType::Null],
                "Base64 of the credentials for the registry",
            ),
            Parameter::optional(
                "configdrive",
                &[JsonType::String, JsonType::Null],
                "Config drive as base64 text of a gzip file, or its URL",
            ),
        ],
        validate: None,
        run: execute_bootc_install,
    },
    Command {
        name: "get_partition_uuids",
        help: "Returns the identifiers of the deployed partitions",
        kind: Kind::Sync,
        parameters: &[],
        validate: None,
        run: |agent, _| Ok(Value::Object(agent.partition_uuids())),
    },
    Command {
        name: "sync",
        help: "Flushes the caches of the disks",
        kind: Kind::Sync,
        parameters: &[],
        validate: None,
        run: |_, _| sync().map(|()| Value::Null),
    },
    Command {
        name: "run_image",
        help: "Reboots the machine",
        kind: Kind::Async,
        parameters: &[],
        validate: None,
        run: |agent, _| leave(agent, Stop::Reboot),
    },
    Command {
        name: "power_off",
        help: "Powers the machine off",
        kind: Kind::Async,
        parameters: &[],
        validate: None,
        run: |agent, _| leave(agent, Stop::PowerOff),
    },
];

/// What [`ImageInfo::from_params`] asks for of every image.
fn image_info_schema() -> Value {
    let digest = json!({"type": ["string", "null"], "minLength": 1});
    let urls = json!({"type": "array", "minItems": 1, "items": {"type": "string"}});
    json!({
        "required": ["id", "urls"],
        "properties": {
            "id": {"type": "string", "minLength": 1},
            "urls": urls,
            "checksum": digest,
            "os_hash_algo": digest,
            "os_hash_value": digest,
        },
    })
}

fn prepare_image(agent: &Arc<Agent>, params: &Params) -> Result<Value, CommandError> {
    let config_drive = params.get("configdrive").and_then(Value::as_str);
    // A deploy step brings the newest record of the node along; this command does not.
    agent.refresh_node_without_hints();
    let deployed = crate::deployment::image::deploy(agent, &params["image_info"], config_drive)?;
    Ok(json!(deployed.text))
}

fn execute_bootc_install(agent: &Arc<Agent>, params: &Params) -> Result<Value, CommandError> {
    let text = |name: &str| params.get(name).and_then(Value::as_str);
    let nothing = Map::new();
    agent.refresh_node_without_hints();
    let order = Order {
        image_source: text("image_source").unwrap_or_default(),
        instance_info: params.get("instance_info").and_then(Value::as_object).unwrap_or(&nothing),
        pull_secret: text("pull_secret").filter(|secret| !secret.is_empty()),
        config_drive: text("configdrive"),
    };
    crate::deployment::bootc::install(agent, &order).map(Value::from)
}

fn sync() -> Result<(), CommandError> {
    power::sync_all().map_err(|error| {
        let details = format!("the disks' caches cannot be flushed ({error}): do not cut the power yet");
        CommandError::new(ErrorKind::CommandExecutionError, details)
    })
}

/// Time for the answer to the order to leave this machine, and to be lost once. Without it a quick machine is off before,
/// and the conductor waits for it in vain, a minute long on a network that tells nobody so.
const ANSWER: Duration = Duration::from_millis(500);

/// The next system starts with the right time, and everything is on the disks before the machine stops;
/// a failing flush is only logged here (section 5.8).
fn leave(agent: &Agent, stop: Stop) -> Result<Value, CommandError> {
    export::stop_for_good(agent);
    agent.runtime.block_on(clock::hand_over(&agent.options))?;
    if let Err(error) = sync() {
        tracing::warn!("{}", error.details);
    }
    thread::sleep(ANSWER);
    power::stop(stop).map(|()| Value::Null).map_err(|error| {
        let details = format!("the kernel refused to stop the machine ({error}): use its power button");
        CommandError::new(ErrorKind::SystemRebootError, details)
    })
}
