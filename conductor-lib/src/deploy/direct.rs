//! The direct deploy: the agent fetches the image itself and writes it (contract 5.3).

use super::agent_base::{self, CoreStep};
use super::image::Image;
use super::local_boot::{self, PartitionUuids};
use crate::deploy::AgentDeploy;
use crate::error::Error;
use crate::interfaces::base::{Interface, InterfaceError};
use crate::interfaces::outcome::Outcome;
use crate::model::{Node, PlannedStep};
use crate::plan::KnownStep;
use crate::task::Task;
use crate::task::event::EventKind;
use async_trait::async_trait;
use farrier_protocol::command::CommandResult;
use serde_json::{Value, json};

/// The step of the agent that writes the image.
const WRITE_IMAGE: &str = "write_image";

/// The agent streams the image to the root disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Direct;

#[async_trait]
impl Interface for Direct {
    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        let image = Image::from_instance_info(&node.instance_info);
        let checked = image.and_then(|image| image.check_preserved(&node.driver_internal_info));
        checked.map_err(super::invalid)
    }
}

#[async_trait]
impl AgentDeploy for Direct {
    fn core_steps(&self) -> Vec<KnownStep> {
        agent_base::core_steps_and(WRITE_IMAGE)
    }

    fn supports_deploy(&self, node: &Node) -> bool {
        node.instance_info.contains_key("image_source")
    }

    async fn execute(&self, task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error> {
        match CoreStep::of(step) {
            Some(CoreStep::PrepareInstanceBoot) => prepare_instance_boot(task).await,
            None if agent_base::is(step, WRITE_IMAGE) => write_image(task, step).await,
            _ => agent_base::execute(task, step).await,
        }
    }

    fn note_result(&self, task: &mut Task, step: &PlannedStep, result: &CommandResult) {
        if agent_base::is(step, WRITE_IMAGE) {
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

async fn write_image(task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error> {
    let image = Image::from_instance_info(&task.node.instance_info)?;
    let config_drive = task.config_drive().await?;
    let args = json!({"image_info": image.info(task.node.uuid, task.node.boot_mode()?, config_drive.as_deref()), "configdrive": config_drive});
    let outcome = agent_base::start(task, step, args).await?;
    task.emit_once(EventKind::WriteStarted);
    Ok(outcome)
}

async fn prepare_instance_boot(task: &mut Task) -> Result<Outcome, Error> {
    let uuids = task.agent().await?.run("standby.get_partition_uuids", json!({})).await?;
    let text = |name: &str| uuids.get(name).and_then(Value::as_str).map(str::to_owned);
    let uuids = PartitionUuids {
        root: text("root uuid"),
        esp: text("efi system partition uuid"),
        prep: text("PReP Boot partition uuid"),
    };
    local_boot::configure(task, uuids).await?;
    Ok(Outcome::Done)
}
