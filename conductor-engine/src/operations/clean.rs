//! Automated cleaning, between two users of a machine (section 1.13).

use crate::error::Error;
use crate::lease::HeldTask;
use crate::records::{PendingOrder, Verb};
use farrier_conductor::model::Erasure;
use farrier_conductor::model::Event;

/// Orders the cleaning of a node that has entered it, which counts once saved. Where cleaning is switched off, the node
/// is available at once: that is the operator's explicit word, by the node or the conductor's settings, and the node
/// bears the mark that nothing proves its disks erased.
///
/// # Errors
///
/// [`InvalidState`](Error::Task) in another state.
pub(crate) fn order_cleaning(task: &mut HeldTask) -> Result<(), Error> {
    task.forget_certificates();
    let own = task.node.automated_clean;
    if own.unwrap_or(task.services().settings.automated_clean) {
        *task.order_mut() = Some(PendingOrder::new(Verb::Clean, task.services().now()));
        return Ok(());
    }
    let by = if own.is_some() { "the node" } else { "the conductor's settings" };
    let mark =
        Erasure::not_proven(task.services().now(), format!("automated cleaning is switched off by {by}"));
    task.node.driver_internal_info.erasure = Some(mark);
    *task.order_mut() = None;
    let event = if task.node.retired { Event::Manage } else { Event::Done };
    Ok(task.enter(event)?)
}
