//! Power, as an operator orders it.

use crate::error::Error;
use crate::model::{PowerState, Verb};
use crate::task::Task;

/// The power state that an order leads to.
pub(crate) fn target(verb: Verb) -> Option<PowerState> {
    match verb {
        Verb::PowerOn | Verb::Reboot => Some(PowerState::On),
        Verb::PowerOff => Some(PowerState::Off),
        Verb::Deploy
        | Verb::Undeploy
        | Verb::Manage
        | Verb::Clean
        | Verb::Service
        | Verb::Abort
        | Verb::CleanUp
        | Verb::Forget => None,
    }
}

/// Powers a machine on, off, or off and on. What goes wrong is the node's `last_error`.
///
/// # Errors
///
/// [`Error::Store`].
pub(crate) async fn set_power(mut task: Task, verb: Verb) -> Result<(), Error> {
    match act(&mut task, verb).await {
        Ok(()) => {}
        Err(error @ Error::Store(_)) => return Err(error),
        Err(error) => {
            tracing::error!(node = %task.node.name, "{error}");
            task.node.set_last_error(&error.to_string());
        }
    }
    task.node.target_power_state = None;
    task.order = None;
    task.finish().await
}

async fn act(task: &mut Task, verb: Verb) -> Result<(), Error> {
    match verb {
        Verb::Reboot => task.reboot().await,
        _ if target(verb) == Some(PowerState::On) => task.power_on().await,
        _ => task.power_off().await,
    }
}
