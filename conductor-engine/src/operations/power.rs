//! Power, as an operator orders it (section 9.1).

use crate::error::{Error, Reason};
use crate::lease::HeldTask;
use farrier_conductor::model::{PowerAction, ProvisionState};
use std::time::Duration;

/// Has the power of a machine changed. What goes wrong is the node's `last_error`.
///
/// # Errors
///
/// [`Error::Store`].
pub(crate) async fn set_power(mut task: HeldTask, action: PowerAction) -> Result<(), Error> {
    let limit = task.power_action_limit(action);
    match act(&mut task, action, limit).await {
        Ok(()) => {}
        Err(error @ Error::Store(_)) => return Err(error),
        Err(error) => {
            let target = action.target();
            let text = format!(
                "failed to change the power state to {:?} by {:?}: {error}",
                target.as_str(),
                action.as_str()
            );
            let reason = Reason::new(error.code(), text).to_string();
            tracing::error!(node = %task.node.label(), "{reason}");
            task.node.set_last_error(&reason);
        }
    }
    task.node.target_power_state = None;
    task.node.driver_internal_info.power_action_timeout = None;
    *task.order_mut() = None;
    task.finish().await
}

async fn act(task: &mut HeldTask, action: PowerAction, limit: Duration) -> Result<(), Error> {
    // A machine that cannot be read may be driven all the same.
    if action.is_done_in_its_target() && task.power_state().await.ok() == Some(action.target()) {
        return Ok(task.note_power(action.target()).await?);
    }
    let is_active = task.node.provision_state == ProvisionState::Active;
    if is_active && action == PowerAction::On {
        task.attach_volumes().await?;
    }
    match action {
        PowerAction::On => task.power_on_within(limit).await?,
        PowerAction::Off => task.power_off_within(limit).await?,
        PowerAction::Reboot => task.reboot_within(limit).await?,
        PowerAction::SoftOff => task.soft_power_off(limit).await?,
        // It shuts its system down itself.
        PowerAction::SoftReboot if task.is_switched_by_agent()? => task.reboot_within(limit).await?,
        // One that must never be powered off is reset.
        PowerAction::SoftReboot if task.node.disable_power_off => task.reboot_within(limit).await?,
        PowerAction::SoftReboot => {
            task.soft_power_off(limit).await?;
            task.power_on().await?;
        }
    }
    if is_active && matches!(action, PowerAction::Off | PowerAction::SoftOff) {
        task.detach_volumes().await?;
    }
    Ok(())
}
