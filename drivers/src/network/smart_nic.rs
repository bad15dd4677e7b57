//! Network cards with a system of their own, on which an agent of Neutron does what switches do for others (section
//! 9.9). Nothing is asked of one before its agent is alive, and nothing counts as done before Neutron has heard of it.

use super::binding;
use super::settings::NetworkSettings;
use super::slot::Slot;
use crate::openstack::{Neutron, OpenStackError};
use farrier_conductor::model::Node;
use tokio::time::sleep;

/// What a port says that is connected.
const ACTIVE: &str = "ACTIVE";

/// Whether a machine has such cards.
pub(super) fn any(node: &Node) -> bool {
    node.ports.iter().any(|port| port.is_smartnic)
}

/// Waits until the agent on a card is alive; not at all for a card that has none.
///
/// # Errors
///
/// [`OpenStackError::NoAgent`], and any other [`OpenStackError`].
pub(super) async fn wait_for_agent(
    neutron: &Neutron,
    settings: &NetworkSettings,
    node: &Node,
    slot: &Slot<'_>,
) -> Result<(), OpenStackError> {
    if slot.smart_nic().is_none() {
        return Ok(());
    }
    let host = binding::host(node, slot);
    for _ in 0..settings.neutron_agent_max_attempts {
        if neutron.is_alive(&host).await? {
            return Ok(());
        }
        sleep(settings.neutron_agent_status_retry_interval).await;
    }
    let limit = settings.neutron_agent_status_retry_interval * settings.neutron_agent_max_attempts;
    Err(OpenStackError::NoAgent { host, limit })
}

/// Waits until the agent on a card has connected a port of Neutron; not at all for a card that has none.
///
/// # Errors
///
/// [`OpenStackError::NotBound`], and any other [`OpenStackError`].
pub(super) async fn wait_until_active(
    neutron: &Neutron,
    settings: &NetworkSettings,
    node: &Node,
    slot: &Slot<'_>,
    vif: &str,
) -> Result<(), OpenStackError> {
    if slot.smart_nic().is_none() {
        return Ok(());
    }
    let mut status = String::new();
    for _ in 0..settings.neutron_agent_max_attempts {
        neutron.port(vif).await?.text("status").clone_into(&mut status);
        if status == ACTIVE {
            return Ok(());
        }
        sleep(settings.neutron_agent_status_retry_interval).await;
    }
    let what = format!("status {status}");
    Err(OpenStackError::NotBound { port: vif.to_owned(), host: binding::host(node, slot), what })
}

/// Gives agents on cards the time to carry out that ports are gone.
pub(super) async fn settle(settings: &NetworkSettings, node: &Node) {
    if any(node) {
        sleep(settings.neutron_agent_settle_time).await;
    }
}
