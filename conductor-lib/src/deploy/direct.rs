//! The direct deploy: the agent fetches the image itself and writes it (contract 5.3).

use super::image::Image;
use crate::agent_client::{AgentError, Wait};
use crate::agent_steps;
use crate::error::Error;
use crate::events::EventKind;
use crate::interfaces::base::{Interface, InterfaceError};
use crate::interfaces::deploy::DeployInterface;
use crate::interfaces::outcome::Outcome;
use crate::model::{BootMode, Node, PlannedStep, PowerState, StepKind};
use crate::plan::KnownStep;
use crate::task::Task;
use crate::{ramdisk, ramdisk_logs};
use async_trait::async_trait;
use farrier_protocol::command::CommandResult;
use serde_json::{Value, json};
use tokio::time::Instant;

/// A step that the conductor itself knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CoreStep {
    Deploy,
    WriteImage,
    PrepareInstanceBoot,
    TearDownAgent,
    SwitchToTenantNetwork,
    BootInstance,
}

/// The core steps with their names and priorities.
const CORE_STEPS: &[(CoreStep, &str, i64)] = &[
    (CoreStep::Deploy, "deploy", 100),
    (CoreStep::WriteImage, "write_image", 80),
    (CoreStep::PrepareInstanceBoot, "prepare_instance_boot", 60),
    (CoreStep::TearDownAgent, "tear_down_agent", 40),
    (CoreStep::SwitchToTenantNetwork, "switch_to_tenant_network", 30),
    (CoreStep::BootInstance, "boot_instance", 20),
];

fn core_step(step: &PlannedStep) -> Option<CoreStep> {
    let same = |name: &str| step.interface == "deploy" && step.step == name;
    CORE_STEPS.iter().find(|(_, name, _)| same(name)).map(|(core, _, _)| *core)
}

/// The agent streams the image to the root disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Direct;

#[async_trait]
impl Interface for Direct {
    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        let image = Image::from_instance_info(&node.instance_info);
        let checked = image.and_then(|image| image.check_preserved(&node.driver_internal_info));
        checked.map_err(|error| match error {
            Error::Invalid { field, reason } => InterfaceError::Invalid { field, reason },
            other => InterfaceError::driver(other),
        })
    }
}

#[async_trait]
impl DeployInterface for Direct {
    fn core_steps(&self) -> Vec<KnownStep> {
        let known = |(core, name, priority): &(CoreStep, &str, i64)| KnownStep {
            in_band: *core == CoreStep::WriteImage,
            ..KnownStep::new(StepKind::Deploy, "deploy", name, *priority)
        };
        CORE_STEPS.iter().map(known).collect()
    }

    async fn execute(&self, task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error> {
        match core_step(step) {
            Some(CoreStep::Deploy) => boot_ramdisk(task).await,
            Some(CoreStep::WriteImage) => write_image(task, step).await,
            Some(CoreStep::PrepareInstanceBoot) => prepare_instance_boot(task).await,
            Some(CoreStep::TearDownAgent) => tear_down_agent(task).await,
            Some(CoreStep::SwitchToTenantNetwork) => switch_to_tenant_network(task).await,
            Some(CoreStep::BootInstance) => boot_instance(task).await,
            None => start_step(task, step, json!(step.args)).await,
        }
    }

    fn note_result(&self, task: &mut Task, step: &PlannedStep, result: &CommandResult) {
        if core_step(step) == Some(CoreStep::WriteImage) {
            let report =
                result.command_result.as_ref().and_then(|value| value.pointer("/deploy_result/report"));
            task.emit_once(EventKind::ImageWritten);
            task.emit_once(EventKind::ImageVerified { report: report.cloned() });
            // It was read when the deployment was ordered, and again when it was written.
            if let Ok(image) = Image::from_instance_info(&task.node.instance_info)
                && let Some(layout) = image.layout()
            {
                layout.note(&mut task.node.driver_internal_info);
            }
        }
    }
}

async fn boot_ramdisk(task: &mut Task) -> Result<Outcome, Error> {
    task.attach_volumes().await?;
    ramdisk::run(task).await
}

async fn write_image(task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error> {
    let image = Image::from_instance_info(&task.node.instance_info)?;
    let config_drive = task.services.store.config_drive(task.node.uuid).await?;
    let args = json!({"image_info": image.info(task.node.uuid, boot_mode(&task.node)?, config_drive.as_deref()), "configdrive": config_drive});
    let outcome = start_step(task, step, args).await?;
    task.emit_once(EventKind::WriteStarted);
    Ok(outcome)
}

async fn start_step(task: &Task, step: &PlannedStep, args: Value) -> Result<Outcome, Error> {
    agent_steps::start(task, StepKind::Deploy, step, &args).await?;
    Ok(Outcome::Wait)
}

async fn prepare_instance_boot(task: &mut Task) -> Result<Outcome, Error> {
    let client = task.agent().await?;
    let uuids = client.run("standby.get_partition_uuids", json!({})).await?;
    let root = uuids.get("root uuid").and_then(Value::as_str).map(str::to_owned);
    task.node.driver_internal_info.root_uuid_or_disk_id.clone_from(&root);
    let is_partition = Image::from_instance_info(&task.node.instance_info)?.layout().is_some();
    let boot_mode = boot_mode(&task.node)?;
    if is_partition || boot_mode == BootMode::Uefi {
        // An image of a whole disk has its own partitions, which the agent finds.
        let of_partition = |name: &str| uuids.get(name).filter(|_| is_partition).cloned();
        let params = json!({
            "root_uuid": root,
            "efi_system_part_uuid": of_partition("efi system partition uuid"),
            "prep_boot_part_uuid": of_partition("PReP Boot partition uuid"),
            "target_boot_mode": boot_mode.as_str(),
        });
        client.run_polled("image.install_bootloader", params).await?;
        task.emit(EventKind::BootEntry);
    }
    task.prepare_instance().await?;
    Ok(Outcome::Done)
}

/// The agent powers its machine off itself, after it flushed what it wrote; only a machine that
/// stays on is forced. A machine that is off already was asked before a conductor stopped.
async fn tear_down_agent(task: &mut Task) -> Result<Outcome, Error> {
    if task.node.disable_power_off {
        return lock_down(task).await;
    }
    if task.power_state().await? != PowerState::Off {
        ramdisk_logs::collect(task, false).await;
        let told = task.agent().await?.execute("standby.power_off", json!({}), Wait::UntilAccepted).await;
        // A machine that is off can answer no more.
        if told.is_err() && task.power_state().await? != PowerState::Off {
            told?;
        }
        let deadline = Instant::now() + task.services.settings.power_off_timeout;
        if !task.goes_off(deadline).await? {
            tracing::warn!(node = %task.node.label(), "the agent did not power the machine off; forcing it");
        }
    }
    task.power_off().await?;
    task.emit(EventKind::PoweredOff);
    Ok(Outcome::Done)
}

/// The agent of a machine that must never be powered off flushes what it wrote, and ends (section 4.5). One that does
/// not answer was told so before a conductor stopped.
async fn lock_down(task: &mut Task) -> Result<Outcome, Error> {
    ramdisk_logs::collect(task, false).await;
    let (client, settings) = (task.agent().await?, &task.services.settings);
    match client.run("standby.sync", json!({})).await {
        Ok(_) => drop(client.execute("system.lockdown", json!({}), Wait::UntilAccepted).await),
        Err(AgentError::Unreachable { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let deadline = Instant::now() + settings.power_off_timeout;
    while client.commands().await.is_ok() {
        if Instant::now() >= deadline {
            let reason = "the agent still answers after system.lockdown; see its log";
            return Err(Error::invalid("the agent", reason));
        }
        tokio::time::sleep(settings.power_poll_interval).await;
    }
    Ok(Outcome::Done)
}

async fn switch_to_tenant_network(task: &mut Task) -> Result<Outcome, Error> {
    ramdisk::leave_network(task).await?;
    task.configure_tenant_networks().await?;
    Ok(Outcome::Done)
}

async fn boot_instance(task: &mut Task) -> Result<Outcome, Error> {
    match task.node.disable_power_off {
        true => task.reboot().await?,
        false => task.power_on().await?,
    }
    task.emit(EventKind::Booting);
    Ok(Outcome::Done)
}

/// The boot mode of the node's capabilities; UEFI unless they say otherwise.
fn boot_mode(node: &Node) -> Result<BootMode, Error> {
    Ok(node.properties.capabilities()?.boot_mode()?.unwrap_or(BootMode::Uefi))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NewNode;
    use time::OffsetDateTime;

    #[test]
    fn boot_mode_comes_from_the_capabilities() {
        let mut node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
        for (capabilities, uefi) in [
            (json!("boot_mode:bios"), false),
            (json!("cpu_vt:true, boot_mode:bios"), false),
            (json!("boot_mode:uefi"), true),
            (json!(null), true),
        ] {
            node.properties.insert("capabilities".into(), capabilities.clone());
            assert_eq!(boot_mode(&node).unwrap() == BootMode::Uefi, uefi, "{capabilities}");
        }
    }
}
