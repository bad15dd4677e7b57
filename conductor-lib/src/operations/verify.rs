//! The proof that a machine is under control (section 12.6).

use super::failure::fail;
use crate::error::Error;
use crate::model::{Event, PowerState};
use crate::task::Task;

/// Reads the power state of a machine, for which its power interface alone is needed: what it boots, and by which cards,
/// is told later. When that cannot be, the node stays enrolled, with the reason.
///
/// # Errors
///
/// [`Error::Store`].
pub(crate) async fn verify(mut task: Task) -> Result<Option<Task>, Error> {
    match read(&task).await {
        Ok(power) => {
            task.node.power_state = Some(power);
            task.order = None;
            task.enter(Event::Done)?;
            task.finish().await.map(|()| None)
        }
        Err(error @ Error::Store(_)) => Err(error),
        Err(error) => fail(task, &error.to_string()).await,
    }
}

async fn read(task: &Task) -> Result<PowerState, Error> {
    task.validate_power().await?;
    task.power_state().await
}
