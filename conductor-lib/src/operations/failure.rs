//! The end of an operation that failed (section 2.8).

use crate::error::Error;
use crate::events::EventKind;
use crate::heartbeat::SessionEnd;
use crate::model::{Event, Order, PowerState, Verb};
use crate::task::Task;

/// Ends the operation as failed: `last_error` is written once, with the transition (lesson F64), and with it the order
/// to power the machine off, so that it does not stay on when the conductor stops in between.
///
/// # Errors
///
/// [`Error::Store`], when it cannot be recorded, and [`Error::InvalidState`], when there is no operation.
pub(crate) async fn fail(mut task: Task, reason: &str) -> Result<(), Error> {
    task.enter(Event::Fail)?;
    task.node.set_last_error(reason);
    task.node.end_plan();
    task.end_session(SessionEnd::PowerAction);
    task.node.target_power_state = Some(PowerState::Off);
    task.order = Some(Order::new(Verb::PowerOff, task.services.now()));
    tracing::error!(node = %task.node.name, "{reason}");
    match task.power_off().await {
        Ok(()) => {}
        Err(error @ Error::Store(_)) => return Err(error),
        Err(error) => {
            let text = format!("{reason} (and then the machine could not be powered off: {error})");
            task.node.set_last_error(&text);
        }
    }
    task.node.target_power_state = None;
    task.order = None;
    let failed = EventKind::Failed { error: task.node.last_error.clone().unwrap_or_default() };
    let (services, uuid) = (task.services.clone(), task.node.uuid);
    task.finish().await?;
    services.events.push(uuid, failed);
    Ok(())
}
