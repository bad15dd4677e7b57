//! An inspection, from its order to its end. Two orders say how far it has come: the first until the ramdisk posts, the
//! second from then on.

use crate::error::Error;
use crate::lease::HeldTask;
use farrier_conductor::heartbeat::SessionEnd;
use farrier_conductor::in_band::InspectInterface;
use farrier_conductor::interfaces::outcome::Outcome;
use farrier_conductor::model::Event;
use farrier_conductor::steps::Progress;

/// Begins an inspection, again when a conductor stopped meanwhile.
///
/// # Errors
///
/// What fails the inspection; [`Error::Store`], when nothing is known to have failed but the store.
pub(crate) async fn begin(task: &mut HeldTask, inspect: &dyn InspectInterface) -> Result<Progress, Error> {
    match inspect.inspect_hardware(task).await? {
        Outcome::Wait => {
            task.enter(Event::Wait)?;
            Ok(Progress::Waits)
        }
        Outcome::Done => done(task),
    }
}

/// Goes on with an inspection whose ramdisk has posted.
///
/// # Errors
///
/// As [`begin`].
pub(crate) async fn go_on(task: &mut HeldTask, inspect: &dyn InspectInterface) -> Result<Progress, Error> {
    let received = task.services().store.received_inspection(task.node.uuid).await?;
    let nothing = || {
        Error::invalid(
            "the inspection",
            "the inspection data of the ramdisk are lost; inspect the node again",
        )
    };
    inspect.continue_inspection(task, received.ok_or_else(nothing)?).await?;
    if task.keeps_agent() {
        task.agent_has_posted();
    }
    done(task)
}

fn done(task: &mut HeldTask) -> Result<Progress, Error> {
    let keeps_agent = task.keeps_agent();
    task.end_session(SessionEnd::Operation { keeps_agent });
    *task.order_mut() = None;
    task.enter(Event::Done)?;
    Ok(Progress::Done)
}
