//! Takes the orders of operators that give a machine a rescue system, and its instance back (section 2.7).

use crate::conductor::Conductor;
use crate::error::Error;
use crate::records::Verb;
use crate::store::ConfigDrive;
use farrier_conductor::model::Event;

impl Conductor {
    pub(super) async fn rescue(&self, id: &str, password: &str) -> Result<(), Error> {
        let hash = self.settings().rescue_password_hash_algorithm.hash(password)?;
        let mut task = self.begin_operation(id, Event::Rescue).await?;
        if self.drives(&task.node) {
            task.validate().await?;
            let rescue = self.services().rescue_interface(&task.node)?;
            rescue.validate(&task.node).await?;
            rescue.validate_rescue(&task).await?;
        }
        task.node.instance_info.set_hashed_rescue_password(hash);
        self.write_order(task, Verb::Rescue, ConfigDrive::Keep).await
    }

    pub(super) async fn unrescue(&self, id: &str) -> Result<(), Error> {
        let task = self.begin_operation(id, Event::Unrescue).await?;
        if self.drives(&task.node) {
            task.validate().await?;
            self.services().rescue_interface(&task.node)?.validate(&task.node).await?;
        }
        self.write_order(task, Verb::Unrescue, ConfigDrive::Keep).await
    }
}
