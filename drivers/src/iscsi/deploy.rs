//! The deploy interface.

use super::error::IscsiError;
use super::initiators::{Initiators, KEY};
use super::unit::LogicalUnit;
use super::write::{Job, Written};
use async_trait::async_trait;
use farrier_boot::mode::table;
use farrier_conductor::EventKind;
use farrier_conductor::agent::AgentError;
use farrier_conductor::deploy::AgentDeploy;
use farrier_conductor::deploy::agent_base::{self, CoreStep};
use farrier_conductor::deploy::disk_export::{self, Access, DiskExport, PORT_KEY, portal_port};
use farrier_conductor::deploy::image::Image;
use farrier_conductor::deploy::invalid;
use farrier_conductor::deploy::local_boot::{self, PartitionUuids};
use farrier_conductor::interfaces::{Interface, InterfaceError, Outcome, Properties};
use farrier_conductor::model::{BootMode, Node, PlannedStep};
use farrier_conductor::plan::KnownStep;
use farrier_conductor::{Error, Task};
use farrier_imaging::cancel::CancelHandle;
use farrier_imaging::progress::ProgressHandle;
use farrier_imaging::source::{HttpSource, Options};
use farrier_protocol::inventory::{Disk, Inventory};
use farrier_protocol::lookup;
use serde_json::{Value, json};
use tokio::runtime::Handle;

/// The step by which the image is written.
const WRITE_IMAGE: &str = "write_image";
/// The record of the export, for a conductor that takes over.
const EXPORT: &str = "iscsi_target";
/// The note of what the partitions are known by (section 5.6).
const UUIDS: &str = "deployment_uuids";

/// The conductor writes the disk, which the agent exports.
#[derive(Debug, Clone)]
pub struct IscsiDeploy {
    initiators: Initiators,
}

/// Stops a thread when no task waits for it any more.
struct Cancels(CancelHandle);

impl Drop for Cancels {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl IscsiDeploy {
    /// An interface that logs in by these initiators. What a conductor that was killed has left ends meanwhile.
    pub fn new(initiators: Initiators) -> Self {
        initiators.end_what_is_left();
        Self { initiators }
    }

    async fn write_image(&self, task: &mut Task) -> Result<(), Error> {
        let image = Image::from_instance_info(&task.node.instance_info)?;
        image.check_preserved(&task.node.driver_internal_info)?;
        let job = job(&task.node, &image, task.config_drive().await?)?;
        close_left(task).await?;
        let agent_url = task.session().agent_url.clone().ok_or(AgentError::NotConnected)?;
        let export = DiskExport::anew(&agent_url, portal_port(&task.node)?, task.node.uuid)?;
        let unit = LogicalUnit::of(&export)?;
        let disks = disks(task).await?;
        // Recorded before it is done: the conductor that takes over closes it.
        note(task, EXPORT, Some(json!(export.target))).await?;
        let access = if job.keeps_table() { Access::Write } else { Access::WriteWiped };
        if let Err(error) = export.start(task, access).await {
            if let Error::Agent(AgentError::Failed { .. } | AgentError::Refused { .. }) = error {
                note(task, EXPORT, None).await?;
            }
            return Err(error);
        }
        let written = self.write(task, job, unit, disks).await;
        let closed = close_left(task).await;
        let written = match (written, closed) {
            (Ok(written), Ok(())) => written,
            (Ok(_), Err(error)) => return Err(error),
            (Err(error), closed) => {
                if let Err(also) = closed {
                    tracing::warn!(node = %task.node.label(), "the export of the disk continues: {also}");
                }
                return Err(error);
            }
        };
        task.emit_once(EventKind::ImageWritten);
        task.emit_once(EventKind::ImageVerified { report: serde_json::to_value(&written.report).ok() });
        if let Some(layout) = image.layout() {
            layout.note(&mut task.node.driver_internal_info);
        }
        let PartitionUuids { root, esp, prep } = written.uuids;
        let uuids =
            json!({"root uuid": root, "efi system partition uuid": esp, "PReP Boot partition uuid": prep});
        note(task, UUIDS, Some(uuids)).await
    }

    /// Logs in, writes and logs out on a separate thread, as long as a task waits for it.
    async fn write(
        &self,
        task: &Task,
        job: Job,
        unit: LogicalUnit,
        disks: Vec<Disk>,
    ) -> Result<Written, Error> {
        let client = reqwest::Client::builder().build().map_err(InterfaceError::driver)?;
        let source = HttpSource::new(client, Handle::current(), Options::default());
        let (progress, cancel) = (ProgressHandle::default(), CancelHandle::default());
        let _cancels = Cancels(cancel.clone());
        task.hold().await?;
        task.emit_once(EventKind::WriteStarted);
        let (initiator, shown) = (self.initiators.of(&task.node)?, progress.clone());
        let mut work = tokio::task::spawn_blocking(move || -> Result<Written, IscsiError> {
            let session = initiator.log_in(&unit, &disks, &|| cancel.is_cancelled())?;
            let written = job.write(session.disk(), &source, &progress, &cancel);
            let logged_out = session.log_out();
            // Why nothing was written tells more than that the session was not ended well.
            let written = written?;
            logged_out.map(|()| written)
        });
        loop {
            tokio::select! {
                done = &mut work => return Ok(done.map_err(|_| IscsiError::Crashed)??),
                () = tokio::time::sleep(task.settings().progress_interval) => {
                    task.emit(EventKind::Progress(shown.snapshot()));
                    task.hold().await?;
                }
            }
        }
    }
}

#[async_trait]
impl Interface for IscsiDeploy {
    fn get_properties(&self) -> Properties {
        &[
            (PORT_KEY, "port of the machine at which its agent exports the disk; 3260 unless it is given"),
            (KEY, "iSCSI initiator: qemu or open-iscsi; that of the conductor unless it is given"),
        ]
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        let image = Image::from_instance_info(&node.instance_info).map_err(invalid)?;
        image.check_preserved(&node.driver_internal_info).map_err(invalid)?;
        portal_port(node)?;
        job(node, &image, None).map_err(invalid)?;
        self.initiators.of(node)?.require().map_err(InterfaceError::driver)
    }
}

#[async_trait]
impl AgentDeploy for IscsiDeploy {
    fn core_steps(&self) -> Vec<KnownStep> {
        agent_base::core_steps_and_own(WRITE_IMAGE)
    }

    fn supports_deploy(&self, node: &Node) -> bool {
        node.instance_info.contains_key("image_source")
    }

    async fn execute(&self, task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error> {
        match CoreStep::of(step) {
            Some(CoreStep::PrepareInstanceBoot) => {
                let uuids = noted_uuids(&task.node)?;
                local_boot::configure(task, uuids).await?;
            }
            None if agent_base::is(step, WRITE_IMAGE) => self.write_image(task).await?,
            _ => return agent_base::execute(task, step).await,
        }
        Ok(Outcome::Done)
    }
}

fn job(node: &Node, image: &Image, config_drive: Option<String>) -> Result<Job, Error> {
    let mode = node.boot_mode()?;
    let info = image.info(node.uuid, mode, None);
    let asked = lookup::Node {
        instance_info: node.instance_info.0.clone(),
        properties: node.properties.0.clone(),
        ..lookup::Node::default()
    };
    Ok(Job::new(&info, config_drive, mode == BootMode::Uefi, table(&asked))?)
}

/// The disks that the machine has.
async fn disks(task: &Task) -> Result<Vec<Disk>, Error> {
    let answer = task.agent().await?.run("poll.get_hardware_info", json!({})).await?;
    let inventory: Inventory = serde_json::from_value(answer)
        .map_err(|error| Error::invalid("the agent's inventory", format!("cannot be read: {error}")))?;
    Ok(inventory.disks)
}

/// Has the agent end the export that is noted, if one is (lesson F60).
async fn close_left(task: &mut Task) -> Result<(), Error> {
    if task.node.driver_internal_info.others.contains_key(EXPORT) {
        disk_export::stop(task).await?;
        note(task, EXPORT, None).await?;
    }
    Ok(())
}

async fn note(task: &mut Task, key: &str, value: Option<Value>) -> Result<(), Error> {
    let notes = &mut task.node.driver_internal_info.others;
    match value {
        Some(value) => drop(notes.insert(key.to_owned(), value)),
        None => drop(notes.remove(key)),
    }
    task.save().await
}

fn noted_uuids(node: &Node) -> Result<PartitionUuids, Error> {
    let noted = node.driver_internal_info.others.get(UUIDS);
    let noted = noted
        .ok_or_else(|| Error::invalid("deploy_steps", "write_image did not run; deploy the node again"))?;
    let text = |key: &str| noted.get(key).and_then(Value::as_str).map(str::to_owned);
    Ok(PartitionUuids {
        root: text("root uuid"),
        esp: text("efi system partition uuid"),
        prep: text("PReP Boot partition uuid"),
    })
}
