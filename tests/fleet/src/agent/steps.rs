//! Clean, deploy and service steps (contract, 4.1, 4.2 and 5).

use super::commands::{Agent, Outcome};
use super::erasing;
use super::inventory;
use super::process::Order;
use crate::fault::{Class, Fault, Kind};
use crate::file::Phase;
use crate::machine::Disk;
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::step::Phase as StepPhase;
use serde_json::{Map, Value, json};
use std::future;

/// The steps: name, interface, and priority in cleaning.
const STEPS: [(&str, &str, i64); 7] = [
    ("erase_devices", "deploy", 10),
    ("erase_devices_metadata", "deploy", 99),
    ("erase_devices_express", "deploy", 0),
    ("burnin_memory", "deploy", 0),
    ("create_configuration", "raid", 0),
    ("delete_configuration", "raid", 0),
    ("write_image", "deploy", 0),
];

/// The step that writes an image. It is none of cleaning.
const WRITE_IMAGE: &str = "write_image";

/// What a phase lists.
pub(super) fn list(phase: StepPhase) -> Value {
    let is_cleaning = phase == StepPhase::Clean;
    let steps = STEPS.iter().filter(|(name, ..)| !is_cleaning || *name != WRITE_IMAGE);
    let step = |(name, interface, priority): &(&str, &str, i64)| {
        let priority = if is_cleaning { *priority } else { 0 };
        json!({
            "step": name, "interface": interface, "priority": priority, "reboot_requested": false,
            "abortable": name.starts_with("erase") || name.starts_with("burnin"),
        })
    };
    json!({
        format!("{}_steps", phase.name()): {"GenericHardwareManager": steps.map(step).collect::<Vec<_>>()},
        "hardware_manager_version": versions(),
    })
}

fn versions() -> Value {
    json!({"generic_hardware_manager": "1.2"})
}

/// The phase whose steps a command executes, by its full or bare name.
pub(super) fn phase_of(name: &str) -> Option<StepPhase> {
    let of = |phase: &&StepPhase| {
        let bare = format!("execute_{}_step", phase.name());
        name == bare || name == format!("{}.{bare}", phase.name())
    };
    StepPhase::ALL.iter().find(of).copied()
}

/// Executes a step.
pub(super) async fn execute(agent: &Agent, command: &str, parameters: &Map<String, Value>) -> Outcome {
    let name = phase_of(command).unwrap_or(StepPhase::Clean).name();
    let step = parameters.get("step").cloned().unwrap_or_default();
    let told = parameters.get(&format!("{name}_version")).filter(|told| !told.is_null());
    if told.is_some_and(|told| *told != versions()) {
        return Err(CommandError::new(
            ErrorKind::VersionMismatch,
            "the versions of hardware managers differ",
        ));
    }
    let result = match step["step"].as_str().unwrap_or_default() {
        WRITE_IMAGE => write_image(agent, &step["args"]).await?,
        "erase_devices_metadata" => {
            need_disk(agent).await?;
            take_time(agent, Phase::EraseMetadata).await;
            agent.machine.write_disk(Disk::Blank);
            Value::Null
        }
        erases @ ("erase_devices" | "erase_devices_express") => {
            need_disk(agent).await?;
            take_time(agent, Phase::EraseDevices).await;
            agent.machine.write_disk(Disk::Blank);
            erasing::proof(agent, erases, &step)?
        }
        known if STEPS.iter().any(|(step, ..)| *step == known) => {
            take_time(agent, Phase::OtherStep).await;
            Value::Null
        }
        other => {
            let text = format!("no hardware manager has the step {other}");
            return Err(CommandError::new(ErrorKind::HardwareManagerMethodNotFound, text));
        }
    };
    Ok(json!({format!("{name}_result"): result, format!("{name}_step"): step}))
}

/// Writes the image of these arguments.
pub(super) async fn write_image(agent: &Agent, arguments: &Value) -> Outcome {
    let info = &arguments["image_info"];
    let url = info["urls"][0].as_str().unwrap_or_default().to_owned();
    let (machine, id) = (&agent.machine, info["id"].as_str().unwrap_or_default());
    need_disk(agent).await?;
    machine.write_disk(Disk::Cut);
    take_time(agent, Phase::WriteImage).await;
    if let Some(fault) = machine.strike(Class::ImageServer) {
        take_slow_image(agent, fault, &url).await?;
    }
    if machine.strike(Class::ImageDigest).is_some() {
        let text = format!(
            "image {id} from {url} has another digest than {}: check the image and its checksum",
            info["os_hash_value"].as_str().or(info["checksum"].as_str()).unwrap_or("it should")
        );
        return Err(CommandError::new(ErrorKind::ImageChecksumError, text));
    }
    machine.write_disk(Disk::Image(url));
    let device = &inventory::disks(machine)[0].name;
    let text = format!("prepare_image: image ({id}) written to device {device} root_uuid=0x00000000");
    Ok(json!({"result": text}))
}

/// An image server that is slow, or is cut off for ever.
async fn take_slow_image(agent: &Agent, fault: Fault, url: &str) -> Result<(), CommandError> {
    tokio::time::sleep(agent.machine.file().shortened(fault.lasts)).await;
    match fault.recoverable {
        true => Ok(()),
        false => {
            let text = format!(
                "the download of {url} broke off after 524288 bytes of 1048576: connection reset by peer, ten times: check \
                 the image server"
            );
            Err(CommandError::new(ErrorKind::ImageDownloadError, text))
        }
    }
}

/// Waits for a disk that is late.
async fn need_disk(agent: &Agent) -> Result<(), CommandError> {
    let Some(fault) = agent.machine.strike_as(Class::DeviceLate, Kind::Disk) else { return Ok(()) };
    tokio::time::sleep(agent.machine.file().shortened(fault.lasts)).await;
    match fault.recoverable {
        true => Ok(()),
        false => {
            let text = format!(
                "no disk has appeared within {} s: look at the disks and their controller",
                fault.lasts.as_secs()
            );
            Err(CommandError::new(ErrorKind::DeviceNotFound, text))
        }
    }
}

/// Takes the time of a phase, in the middle of which power may fail or the agent crash.
pub(super) async fn take_time(agent: &Agent, phase: Phase) {
    let machine = &agent.machine;
    let half = machine.length(phase) / 2;
    tokio::time::sleep(half).await;
    if !machine.recovers(Class::PowerCut) && machine.strike(Class::PowerCut).is_some() {
        machine.cut_power();
        future::pending::<()>().await;
    }
    if !machine.recovers(Class::AgentCrash) && machine.strike(Class::AgentCrash).is_some() {
        agent.order(Order::Crash);
        future::pending::<()>().await;
    }
    tokio::time::sleep(half).await;
}
