//! Starting the ramdisk, as every operation does that needs the agent, and the networks that it is on.

use crate::error::Error;
use crate::interfaces::network::NetworkKind;
use crate::interfaces::outcome::Outcome;
use crate::model::Family;
use crate::task::event::EventKind;
use crate::task::{AgentReuse, NetworkChange, Task};
use farrier_media::KernelParameters;

/// Has the ramdisk run for the operation of a node, which counts once saved. Where an agent has stayed from the
/// operation before (fast track), there is nothing to boot, and nothing to wait for but the first call of one that was
/// only inspected by.
///
/// # Errors
///
/// [`Error::Interface`], [`Error::Host`].
pub async fn run(task: &mut Task) -> Result<Outcome, Error> {
    match task.agent_that_stayed().await? {
        AgentReuse::Answers => join_network(task).await.map(|()| Outcome::Done),
        AgentReuse::WillCall => join_network(task).await.map(|()| Outcome::Wait),
        AgentReuse::Gone => boot(task).await.map(|()| Outcome::Wait),
    }
}

/// Powers the machine off and on with the ramdisk, which counts once saved. It may call as soon as it is on, but
/// nothing it says can be taken before the node waits.
///
/// # Errors
///
/// [`Error::Interface`], [`Error::Host`].
pub async fn boot(task: &mut Task) -> Result<(), Error> {
    let parameters = task.agent_options()?;
    boot_with(task, parameters).await
}

/// As [`boot`], with these kernel parameters instead of those by which an agent finds this conductor.
///
/// # Errors
///
/// As [`boot`].
pub async fn boot_with(task: &mut Task, parameters: KernelParameters) -> Result<(), Error> {
    task.power_off().await?;
    join_network(task).await?;
    task.prepare_ramdisk(parameters).await?;
    task.power_on().await?;
    task.emit(EventKind::PowerOn);
    Ok(())
}

/// Continues with a ramdisk that runs, after its boot files were cleaned up.
///
/// # Errors
///
/// [`Error::Interface`], [`Error::Host`].
pub async fn take_up(task: &mut Task) -> Result<(), Error> {
    join_network(task).await?;
    task.prepare_ramdisk(task.agent_options()?).await
}

async fn join_network(task: &mut Task) -> Result<(), Error> {
    match networks(task).first() {
        Some(kind) => {
            task.change_networks(&[NetworkChange::UnconfigureTenant, NetworkChange::Add(*kind)]).await
        }
        None => Ok(()),
    }
}

/// Takes the machine off the network of its operation, which counts once saved; nothing happens where it is on none.
///
/// # Errors
///
/// [`Error::Interface`], [`Error::Host`].
pub async fn leave_network(task: &mut Task) -> Result<(), Error> {
    task.change_networks(&leaving(task)).await
}

/// The changes by which the machine leaves the network of its operation.
pub fn leaving(task: &Task) -> Vec<NetworkChange> {
    networks(task).iter().copied().map(NetworkChange::Remove).collect()
}

/// The networks that a machine may be on for the operation of its node. An instance comes and goes by that of its
/// deployment, and may be removed in the middle of a rescue or service.
fn networks(task: &Task) -> &'static [NetworkKind] {
    use NetworkKind::{Cleaning, Inspection, Provisioning, Rescuing, Servicing};
    match task.node.provision_state.family() {
        Some(Family::Deploy) => &[Provisioning],
        Some(Family::Delete) => &[Provisioning, Rescuing, Servicing],
        Some(Family::Clean) => &[Cleaning],
        Some(Family::Inspect) => &[Inspection],
        Some(Family::Rescue | Family::Unrescue) => &[Rescuing],
        Some(Family::Service) => &[Servicing],
        Some(Family::Verify | Family::Adopt) | None => &[],
    }
}
