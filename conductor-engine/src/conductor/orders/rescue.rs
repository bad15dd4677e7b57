//! Takes the orders of operators that give a machine a rescue system, and its instance back (section 2.7).

use crate::conductor::Conductor;
use crate::error::Error;
use crate::records::Verb;
use crate::store::ConfigDrive;
use farrier_conductor::model::Event;

impl Conductor {
    /// Orders a rescue system, which is entered as `rescue` with this password. Of the password only the hash is kept,
    /// until the system has it.
    ///
    /// # Errors
    ///
    /// [`InvalidState`](Error::Task), [`Error::Forbidden`], [`Invalid`](Error::Task) for a password that cannot be one,
    /// [`Interface`](Error::Task) when the machine cannot be rescued, [`Error::Store`] when somebody works on the node.
    pub async fn rescue(&self, id: &str, password: &str) -> Result<(), Error> {
        let hash = self.settings().rescue_password_hash_algorithm.hash(password)?;
        let mut task = self.begin_operation(id, Event::Rescue).await?;
        task.validate().await?;
        let rescue = self.services().rescue_interface(&task.node)?;
        rescue.validate(&task.node).await?;
        rescue.validate_rescue(&task).await?;
        task.node.instance_info.set_hashed_rescue_password(hash);
        self.order(task, Verb::Rescue, ConfigDrive::Keep).await
    }

    /// Orders that the instance of a machine that was rescued, or was to be, runs again.
    ///
    /// # Errors
    ///
    /// [`InvalidState`](Error::Task), [`Error::Forbidden`], [`Interface`](Error::Task) when the machine cannot be controlled,
    /// [`Error::Store`] when somebody works on the node.
    pub async fn unrescue(&self, id: &str) -> Result<(), Error> {
        let task = self.begin_operation(id, Event::Unrescue).await?;
        task.validate().await?;
        self.services().rescue_interface(&task.node)?.validate(&task.node).await?;
        self.order(task, Verb::Unrescue, ConfigDrive::Keep).await
    }
}
