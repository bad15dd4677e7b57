//! Starting the ramdisk, as every operation does that needs the agent.

use crate::error::Error;
use crate::events::EventKind;
use crate::task::Task;

/// Powers the machine off and on with the ramdisk, which counts once saved. It may call as soon as it is on, but
/// nothing it says can be taken before the node waits.
///
/// # Errors
///
/// [`Error::Interface`], [`Error::Store`].
pub(crate) async fn boot(task: &mut Task) -> Result<(), Error> {
    task.power_off().await?;
    task.prepare_ramdisk(task.agent_options()?).await?;
    task.power_on().await?;
    task.emit(EventKind::PowerOn);
    Ok(())
}
