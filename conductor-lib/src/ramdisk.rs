//! Starting the ramdisk, as every operation does that needs the agent, and the networks that it is on.

use crate::error::Error;
use crate::events::EventKind;
use crate::interfaces::network::NetworkKind;
use crate::model::Family;
use crate::task::Task;

/// Powers the machine off and on with the ramdisk, which counts once saved. It may call as soon as it is on, but
/// nothing it says can be taken before the node waits.
///
/// # Errors
///
/// [`Error::Interface`], [`Error::Store`].
pub(crate) async fn boot(task: &mut Task) -> Result<(), Error> {
    task.power_off().await?;
    if let Some(kind) = network(task) {
        task.unconfigure_tenant_networks().await?;
        task.add_network(kind).await?;
    }
    task.prepare_ramdisk(task.agent_options()?).await?;
    task.power_on().await?;
    task.emit(EventKind::PowerOn);
    Ok(())
}

/// Takes the machine off the network of its operation, which counts once saved; nothing happens where it is on none.
///
/// # Errors
///
/// [`Error::Interface`], [`Error::Store`].
pub(crate) async fn leave_network(task: &mut Task) -> Result<(), Error> {
    match network(task) {
        Some(kind) => task.remove_network(kind).await,
        None => Ok(()),
    }
}

/// The network of the operation that a node is in. Its instance comes and goes by that of its deployment.
fn network(task: &Task) -> Option<NetworkKind> {
    match task.node.provision_state.family()? {
        Family::Deploy | Family::Delete => Some(NetworkKind::Provisioning),
        Family::Clean => Some(NetworkKind::Cleaning),
        Family::Inspect => Some(NetworkKind::Inspection),
        Family::Rescue | Family::Unrescue => Some(NetworkKind::Rescuing),
        Family::Service => Some(NetworkKind::Servicing),
        Family::Verify | Family::Adopt => None,
    }
}
