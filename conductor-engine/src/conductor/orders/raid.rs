//! What operators want of the RAID volumes of a machine.

use crate::conductor::Conductor;
use crate::error::Error;
use crate::lease::HeldTask;
use serde_json::{Map, Value};

impl Conductor {
    /// Notes the RAID volumes that an operator wants, or none; steps make them.
    ///
    /// # Errors
    ///
    /// [`Interface`](Error::Task) for what cannot be made, or when the node has no RAID interface, [`Error::Store`]
    /// when a conductor works on the node.
    pub async fn set_target_raid_config(&self, id: &str, target: Map<String, Value>) -> Result<(), Error> {
        let mut task = HeldTask::acquire(self.services(), id).await?;
        let raid = self.services().hardware.raid(&task.node)?;
        raid.validate(&task.node).await?;
        if !target.is_empty() {
            raid.validate_raid_config(&task.node, &target).await?;
        }
        task.node.target_raid_config = target;
        task.finish().await
    }
}
