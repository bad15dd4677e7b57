//! The end of an operation that failed, or that an operator wants to end (sections 2.8 and 3.10).

use crate::error::codes::{ABORTED, CLEANUP_FAILED};
use crate::error::{Error, Reason};
use crate::explain::ramdisk_logs;
use crate::lease::HeldTask;
use crate::operations::Resolved;
use crate::records::{PendingOrder, Verb};
use farrier_conductor::deploy::DeployInterface;
use farrier_conductor::heartbeat::SessionEnd;
use farrier_conductor::in_band::RescueInterface;
use farrier_conductor::model::{
    Event, Family, Fault, Node, PowerState, ProvisionState, StepKind, masked_text, split_code,
};
use farrier_conductor::settings::Settings;
use farrier_conductor::steps;
use farrier_conductor::task::event::EventKind;
use farrier_conductor::task::ramdisk;

/// Ends the operation as failed, and gives the node back when something is to be cleaned up.
///
/// # Errors
///
/// [`Error::Store`], when it cannot be recorded, and [`InvalidState`](Error::Task), when there is no operation.
pub(crate) async fn fail(mut task: HeldTask, reason: &Reason) -> Result<Option<HeldTask>, Error> {
    let family = task.node.provision_state.family();
    let had_step = task.node.current_step().is_some();
    let reason = reason.to_string();
    let reason = &*masked_text(&reason);
    // An operator who has taken the machine away looks for themselves.
    if !task.node.maintenance {
        ramdisk_logs::collect(task.services(), &task.node, task.session(), true).await;
    }
    task.enter(Event::Fail)?;
    tracing::error!(node = %task.node.label(), "{reason}");
    if had_step && let Some(fault) = fault_of(family) {
        put_into_maintenance(&mut task.node, fault, reason);
    }
    let goes_off = powers_off(family, &task.services().settings);
    order_cleanup(&mut task, reason, Verb::CleanUp, goes_off);
    if matches!(family, Some(Family::Verify | Family::Adopt)) {
        // Nothing was done to the machine.
        *task.order_mut() = None;
        return tell(task).await.map(|()| None);
    }
    task.save().await?;
    Ok(Some(task))
}

/// Ends an operation because an operator wants that. It never counts as done (lesson F65): what is owed for it is
/// ordered with the transition, which counts once saved.
///
/// # Errors
///
/// [`InvalidState`](Error::Task), when nothing can be aborted.
pub(crate) fn abort(task: &mut HeldTask) -> Result<(), Error> {
    let step = task.node.current_step().map(|step| format!(" (step {})", step.step)).unwrap_or_default();
    let family = task.node.provision_state.family();
    // A service that failed is aborted from there.
    if task.node.provision_state != ProvisionState::ServiceFailed {
        task.enter(Event::Abort)?;
    }
    let reason = ABORTED.after(&format!("{} aborted by request{step}", in_words(family)));
    match family {
        Some(Family::Service) => order_cleanup(task, &reason, Verb::Abort, false),
        Some(Family::Rescue) => order_cleanup(task, &reason, Verb::Abort, true),
        _ => order_cleanup(task, &reason, Verb::CleanUp, true),
    }
    Ok(())
}

/// Ends an operation that waits in its queue, because an operator wants that. Nothing was done to the machine, so nothing is to
/// be put right.
///
/// # Errors
///
/// [`Error::Store`], and [`InvalidState`](Error::Task), when there is no operation.
pub(crate) async fn withdraw(mut task: HeldTask) -> Result<(), Error> {
    let family = task.node.provision_state.family();
    let reason = ABORTED.after(&format!("{} aborted by request before it began", in_words(family)));
    if is_of_rescue(&task.node) {
        task.node.instance_info.forget_rescue_password();
    }
    task.enter(Event::Fail)?;
    task.node.set_last_error(&reason);
    tell(task).await
}

/// An operation, as an operator calls it.
fn in_words(family: Option<Family>) -> &'static str {
    match family {
        Some(Family::Service) => "service",
        Some(Family::Clean) => "cleaning",
        Some(Family::Deploy) => "deployment",
        Some(Family::Rescue) => "rescue",
        Some(Family::Inspect) => "inspection",
        _ => "operation",
    }
}

/// Records why an operation ended, once and with the transition (lesson F64), and with it what is owed: so nothing is
/// left as it was when the conductor stops in between.
fn order_cleanup(task: &mut HeldTask, reason: &str, verb: Verb, goes_off: bool) {
    // An agent that switches its machine itself cannot power it off, and is needed to go on.
    let stays_on = task.is_switched_by_agent().unwrap_or(false);
    let goes_off = goes_off && !stays_on;
    task.node.set_last_error(reason);
    for kind in StepKind::ALL {
        *task.node.step_mut(kind) = None;
        task.node.plan_mut(kind).stop();
    }
    if is_of_rescue(&task.node) {
        task.node.instance_info.forget_rescue_password();
    }
    // An agent whose machine stays on may be asked to go on, by a retry.
    if goes_off || !stays_on && StepKind::of(task.node.provision_state).is_none() {
        task.end_session(SessionEnd::PowerAction);
    }
    task.node.target_power_state = goes_off.then_some(PowerState::Off);
    *task.order_mut() = Some(PendingOrder::new(verb, task.services().now()));
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
        // Of what failed after a rescue, the instance may run already.
        Some(Family::Verify | Family::Adopt | Family::Unrescue) => false,
        _ => true,
    }
}

fn is_of_rescue(node: &Node) -> bool {
    matches!(node.provision_state.family(), Some(Family::Rescue | Family::Unrescue))
}

/// Puts right what an operation has left that failed or was aborted. What goes wrong with it is added to the node's
/// `last_error`.
///
/// # Errors
///
/// [`Error::Store`].
pub(crate) async fn clean_up(
    mut task: HeldTask,
    deploy: Resolved<dyn DeployInterface>,
    rescue: Resolved<dyn RescueInterface>,
) -> Result<(), Error> {
    put_right(&mut task, deploy, rescue).await?;
    tell(task).await
}

/// Tells whether all is put right.
async fn put_right(
    task: &mut HeldTask,
    deploy: Resolved<dyn DeployInterface>,
    rescue: Resolved<dyn RescueInterface>,
) -> Result<bool, Error> {
    let off = match task.node.target_power_state {
        Some(PowerState::Off) => task.power_off().await.map_err(Error::from),
        _ => Ok(()),
    };
    let cleaned_up = match (task.node.provision_state.family(), deploy, rescue) {
        (Some(Family::Rescue | Family::Unrescue), _, Ok(rescue)) => {
            rescue.clean_up(task).await.map_err(Error::from)
        }
        (Some(Family::Rescue | Family::Unrescue), _, Err(error)) => Err(error),
        (Some(Family::Deploy), Ok(deploy), _) => deploy.clean_up(task).await.map_err(Error::from),
        (Some(Family::Clean), Ok(deploy), _) if task.node.plan(StepKind::Clean).has_agent() => {
            deploy.tear_down_cleaning(task).await.map_err(Error::from)
        }
        _ => task.clean_up_ramdisk().await.map_err(Error::from),
    };
    let network = ramdisk::leave_network(task).await.map_err(Error::from);
    let mut is_right = true;
    for (what, outcome) in
        [("powered off", off), ("cleaned up", cleaned_up), ("taken off its network", network)]
    {
        match outcome {
            Ok(()) => {}
            Err(error @ Error::Store(_)) => return Err(error),
            Err(error) => {
                is_right = false;
                add_to_last_error(&mut task.node, &format!("could not be {what}: {error}"));
            }
        }
    }
    Ok(is_right)
}

/// Ends an operation that was aborted, and after which more is owed than to clean up.
///
/// # Errors
///
/// [`Error::Store`].
pub(crate) async fn abort_at_rest(
    task: HeldTask,
    deploy: Resolved<dyn DeployInterface>,
    rescue: Resolved<dyn RescueInterface>,
) -> Result<(), Error> {
    match is_of_rescue(&task.node) {
        true => abort_rescue(task, deploy, rescue).await,
        false => abort_service(task, deploy).await,
    }
}

/// Ends a rescue that is aborted. When something of it stays, the node is left to an operator.
async fn abort_rescue(
    mut task: HeldTask,
    deploy: Resolved<dyn DeployInterface>,
    rescue: Resolved<dyn RescueInterface>,
) -> Result<(), Error> {
    if !put_right(&mut task, deploy, rescue).await? {
        let reason = task.node.last_error.clone().unwrap_or_default();
        put_into_maintenance(&mut task.node, Fault::RescueAbort, &reason);
    }
    tell(task).await
}

/// Ends a service that is aborted: the machine starts its instance. When it cannot, the node is left to an operator.
async fn abort_service(mut task: HeldTask, deploy: Resolved<dyn DeployInterface>) -> Result<(), Error> {
    let torn_down = match deploy {
        Ok(deploy) => steps::tear_down(&mut task, &*deploy, StepKind::Service).await.map_err(Error::from),
        Err(error) => Err(error),
    };
    match torn_down {
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
    tracing::error!(node = %node.label(), "the machine {text}");
    let reason = node.last_error.clone().unwrap_or_default();
    // The code of the first failure stays, at the end.
    let (first, code) = split_code(&reason);
    let both = format!("{first} (and then the machine {text})");
    node.set_last_error(&match code {
        Some(code) => format!("{both} [{code}]"),
        None => CLEANUP_FAILED.after(&both),
    });
}

/// The end is recorded, and told.
async fn tell(mut task: HeldTask) -> Result<(), Error> {
    task.node.target_power_state = None;
    *task.order_mut() = None;
    let failed = EventKind::Failed { error: task.node.last_error.clone().unwrap_or_default() };
    let (services, uuid) = (task.services().clone(), task.node.uuid);
    task.finish().await?;
    services.events.push(uuid, failed);
    Ok(())
}
