//! Automated cleaning, between two users of a machine (section 1.13).

use crate::error::Error;
use crate::model::{Event, Order, Verb};
use crate::task::Task;

/// Orders the cleaning of a node that has entered it, which counts once saved. Where cleaning is switched off, the node
/// is available at once: that is the operator's explicit word, by the node or the conductor's settings.
///
/// # Errors
///
/// [`Error::InvalidState`] in another state.
pub(crate) fn order_cleaning(task: &mut Task) -> Result<(), Error> {
    if task.node.automated_clean.unwrap_or(task.services.settings.automated_clean) {
        task.order = Some(Order::new(Verb::Clean, task.services.now()));
        return Ok(());
    }
    task.order = None;
    task.enter(if task.node.retired { Event::Manage } else { Event::Done })
}
