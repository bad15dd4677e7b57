//! The proof that a machine is under control (section 12.6).

use crate::error::{Error, Reason};
use crate::lease::HeldTask;
use crate::operations::failure::fail;
use farrier_conductor::model::{Event, PowerState};

/// Reads the power state of a machine, which needs its power interface alone: boot interface and ports may be set later.
/// When the reading fails, the node stays enrolled, with the reason.
///
/// # Errors
///
/// [`Error::Store`].
pub(crate) async fn verify(mut task: HeldTask) -> Result<Option<HeldTask>, Error> {
    match read(&task).await {
        Ok(power) => {
            task.node.power_state = Some(power);
            *task.order_mut() = None;
            task.enter(Event::Done)?;
            task.finish().await.map(|()| None)
        }
        Err(error @ Error::Store(_)) => Err(error),
        Err(error) => fail(task, &Reason::from(&error)).await,
    }
}

async fn read(task: &HeldTask) -> Result<PowerState, Error> {
    task.validate_power().await?;
    Ok(task.power_state().await?)
}
