//! The end of an operation that failed, or that an operator wants to end (sections 2.8 and 3.10).

use crate::error::Error;
use crate::events::EventKind;
use crate::heartbeat::SessionEnd;
use crate::model::{Event, Family, Fault, Node, Order, PowerState, ProvisionState, StepKind, Verb};
use crate::ramdisk;
use crate::settings::Settings;
use crate::steps;
use crate::task::Task;

/// Ends the operation as failed, and cleans up what it left.
///
/// # Errors
///
/// [`Error::Store`], when it cannot be recorded, and [`Error::InvalidState`], when there is no operation.
pub(crate) async fn fail(mut task: Task, reason: &str) -> Result<(), Error> {
    let family = task.node.provision_state.family();
    let had_step = task.node.current_step().is_some();
    task.enter(Event::Fail)?;
    tracing::error!(node = %task.node.name, "{reason}");
    if had_step && let Some(fault) = fault_of(family) {
        put_into_maintenance(&mut task.node, fault, reason);
    }
    let goes_off = powers_off(family, &task.services.settings);
    owe(&mut task, reason, Verb::CleanUp, goes_off);
    if family == Some(Family::Verify) {
        // Nothing was done to the machine.
        task.order = None;
        return tell(task).await;
    }
    task.save().await?;
    clean_up(task).await
}

/// Ends an operation because an operator wants that. It never counts as done (lesson F65): what is owed for it is
/// ordered with the transition, which counts once saved.
///
/// # Errors
///
/// [`Error::InvalidState`], when nothing can be aborted.
pub(crate) fn abort(task: &mut Task) -> Result<(), Error> {
    let step = task.node.current_step().map(|step| format!(" (step {})", step.step)).unwrap_or_default();
    let family = task.node.provision_state.family();
    // A service that failed is aborted from there.
    if task.node.provision_state != ProvisionState::ServiceFailed {
        task.enter(Event::Abort)?;
    }
    let operation = match family {
        Some(Family::Service) => "service",
        Some(Family::Clean) => "cleaning",
        Some(Family::Deploy) => "deployment",
        _ => "operation",
    };
    let reason = format!("{operation} aborted by request{step}");
    match family {
        Some(Family::Service) => owe(task, &reason, Verb::Abort, false),
        _ => owe(task, &reason, Verb::CleanUp, true),
    }
    Ok(())
}

/// Records why an operation ended, once and with the transition (lesson F64), and with it what is owed: so nothing is
/// left as it was when the conductor stops in between.
fn owe(task: &mut Task, reason: &str, verb: Verb, goes_off: bool) {
    task.node.set_last_error(reason);
    for kind in StepKind::ALL {
        *task.node.step_mut(kind) = None;
        task.node.plan_mut(kind).stop();
    }
    task.end_session(SessionEnd::PowerAction);
    task.node.target_power_state = goes_off.then_some(PowerState::Off);
    task.order = Some(Order::new(verb, task.services.now()));
}

/// What it means for a node that a step failed: nobody knows what is on its disks.
fn fault_of(family: Option<Family>) -> Option<Fault> {
    match family? {
        Family::Clean => Some(Fault::Clean),
        Family::Service => Some(Fault::Service),
        _ => None,
    }
}

fn put_into_maintenance(node: &mut Node, fault: Fault, reason: &str) {
    (node.maintenance, node.fault) = (true, Some(fault));
    node.maintenance_reason = Some(reason.to_owned());
}

fn powers_off(family: Option<Family>, settings: &Settings) -> bool {
    match family {
        Some(Family::Deploy) => settings.power_off_after_deploy_failure,
        Some(Family::Clean) => settings.poweroff_in_cleanfail,
        Some(Family::Service) => settings.poweroff_in_servicefail,
        Some(Family::Verify) => false,
        _ => true,
    }
}

/// Puts right what an operation has left that failed or was aborted. What goes wrong with it is added to the node's
/// `last_error`.
///
/// # Errors
///
/// [`Error::Store`].
pub(crate) async fn clean_up(mut task: Task) -> Result<(), Error> {
    let off = match task.node.target_power_state {
        Some(PowerState::Off) => task.power_off().await,
        _ => Ok(()),
    };
    let ramdisk = task.clean_up_ramdisk().await;
    let network = ramdisk::leave_network(&mut task).await;
    for (what, outcome) in [("powered off", off), ("cleaned up", ramdisk), ("taken off its network", network)]
    {
        match outcome {
            Ok(()) => {}
            Err(error @ Error::Store(_)) => return Err(error),
            Err(error) => add_to_last_error(&mut task.node, &format!("could not be {what}: {error}")),
        }
    }
    tell(task).await
}

/// Ends a service that is aborted: the machine starts its instance. When it cannot, the node is left to an operator.
///
/// # Errors
///
/// [`Error::Store`].
pub(crate) async fn abort_service(mut task: Task) -> Result<(), Error> {
    match steps::tear_down(&mut task, StepKind::Service).await {
        Ok(()) => {
            task.node.end_plans();
            task.enter(Event::Abort)?;
        }
        Err(error @ Error::Store(_)) => return Err(error),
        Err(error) => {
            let reason = format!("could not start its instance: {error}");
            add_to_last_error(&mut task.node, &reason);
            put_into_maintenance(&mut task.node, Fault::Service, &reason);
        }
    }
    tell(task).await
}

fn add_to_last_error(node: &mut Node, text: &str) {
    tracing::error!(node = %node.name, "the machine {text}");
    let reason = node.last_error.clone().unwrap_or_default();
    node.set_last_error(&format!("{reason} (and then the machine {text})"));
}

/// The end is recorded, and told.
async fn tell(mut task: Task) -> Result<(), Error> {
    task.node.target_power_state = None;
    task.order = None;
    let failed = EventKind::Failed { error: task.node.last_error.clone().unwrap_or_default() };
    let (services, uuid) = (task.services.clone(), task.node.uuid);
    task.finish().await?;
    services.events.push(uuid, failed);
    Ok(())
}
