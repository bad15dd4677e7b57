//! The end of a node.

use crate::error::{Error, Reason};
use crate::lease::HeldTask;

/// Powers a machine off and forgets its node. What goes wrong is the node's `last_error`, and it stays.
///
/// # Errors
///
/// [`Error::Store`].
pub(crate) async fn forget(mut task: HeldTask) -> Result<(), Error> {
    match act(&mut task).await {
        Ok(()) => {
            let (services, uuid) = (task.services().clone(), task.node.uuid);
            task.delete().await?;
            services.events.forget(uuid);
            Ok(())
        }
        Err(error @ Error::Store(_)) => Err(error),
        Err(error) => {
            tracing::error!(node = %task.node.label(), "{error}");
            task.node.set_last_error(&Reason::from(&error).to_string());
            *task.order_mut() = None;
            task.finish().await
        }
    }
}

async fn act(task: &mut HeldTask) -> Result<(), Error> {
    // Where nothing can switch a machine without its agent, it stays as it is.
    if !task.is_switched_by_agent()? {
        task.power_off().await?;
    }
    task.clean_up_ramdisk().await?;
    task.clean_up_instance().await?;
    Ok(task.forget_machine().await?)
}
