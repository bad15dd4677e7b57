//! Disks that operators have exported by hand: to recover what is on them, or to write them from elsewhere.

use crate::conductor::Machines;
use crate::error::Error;
use crate::lease::HeldTask;
use farrier_conductor::Error as TaskError;
use farrier_conductor::agent::AgentError;
use farrier_conductor::deploy::disk_export::{Access, DiskExport, portal_port, stop};
use farrier_conductor::model::ProvisionState;
use std::time::Duration;
use tokio::time::timeout;

/// Longest time that an agent may take while a client waits for the answer: its disks may be slow to appear.
const LIMIT: Duration = Duration::from_secs(60);

/// The states in which an agent may be there and nothing is done with its disks.
const STATES: [ProvisionState; 8] = {
    use ProvisionState::{
        CleanFailed, CleanHold, DeployFailed, DeployHold, InspectFailed, Manageable, ServiceFailed,
        ServiceHold,
    };
    [Manageable, CleanHold, CleanFailed, DeployHold, DeployFailed, InspectFailed, ServiceHold, ServiceFailed]
};

impl Machines {
    /// Has the agent of a node export its root disk, and returns its address. From then on the node accepts nothing
    /// else, until [`Self::release_disk`] or the end of its agent.
    ///
    /// # Errors
    ///
    /// [`InvalidState`](Error::Task); [`Error::InUse`] when it is exported already; [`Invalid`](Error::Task) when no
    /// agent answers there; [`Agent`](Error::Task) when it refuses; [`Error::Store`] when a conductor works on the
    /// node.
    pub async fn export_disk(&self, id: &str, read_only: bool) -> Result<DiskExport, Error> {
        let mut task = HeldTask::acquire(self.0.services(), id).await?;
        let label = task.node.label();
        if let Some(noted) = &task.node.driver_internal_info.disk_export {
            let reason =
                format!("it is exported as {noted} already; run `farrier disk release {label}` first");
            return Err(Error::InUse { what: format!("the disk of node {label}"), reason });
        }
        if !STATES.contains(&task.node.provision_state) {
            return Err(Error::wrong_state(&task.node, STATES));
        }
        if !task.has_agent().await? {
            return Err(no_agent(&label));
        }
        let agent_url = task.session().agent_url.clone().ok_or(AgentError::NotConnected)?;
        let export = DiskExport::anew(&agent_url, portal_port(&task.node)?, task.node.uuid)?;
        // Recorded before it is done: the conductor that takes over can end it.
        task.node.driver_internal_info.disk_export = Some(export.noted(self.0.now()));
        task.save().await?;
        let access = if read_only { Access::Read } else { Access::Write };
        let started =
            timeout(LIMIT, export.start(&task, access)).await.unwrap_or_else(|_| Err(late(&agent_url)));
        if let Err(TaskError::Agent(AgentError::Failed { .. } | AgentError::Refused { .. })) = started {
            task.node.driver_internal_info.disk_export = None;
        }
        task.finish().await?;
        Ok(started.map(|()| export)?)
    }

    /// Has the agent of a node end the export of its disk that was ordered by hand.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Task) when none was; [`Agent`](Error::Task): it is exported still; [`Error::Store`] when a
    /// conductor works on the node.
    pub async fn release_disk(&self, id: &str) -> Result<(), Error> {
        let mut task = HeldTask::acquire(self.0.services(), id).await?;
        if task.node.driver_internal_info.disk_export.is_none() {
            let reason = format!("the disk of node {} is not exported", task.node.label());
            return Err(Error::invalid("disk", reason));
        }
        let agent_url = task.session().agent_url.clone().unwrap_or_default();
        match timeout(LIMIT, stop(&task)).await.unwrap_or_else(|_| Err(late(&agent_url))) {
            // What has no agent exports nothing.
            Ok(()) | Err(TaskError::Agent(AgentError::NotConnected)) => {
                task.node.driver_internal_info.disk_export = None;
                task.finish().await
            }
            Err(error) => {
                task.leave().await?;
                Err(error.into())
            }
        }
    }
}

fn no_agent(label: &str) -> Error {
    let reason = format!(
        "no agent answers on the machine of node {label}; boot one that waits, such as by `farrier node clean \
         {label} --steps \
         '[{{\"interface\": \"deploy\", \"step\": \"hold\"}}]'`, or by `farrier node service` on a node with an instance"
    );
    Error::invalid("agent", reason)
}

fn late(url: &str) -> TaskError {
    let what = "about the export of the disk".to_owned();
    AgentError::Timeout { url: url.to_owned(), what, seconds: LIMIT.as_secs() }.into()
}
