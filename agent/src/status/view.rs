//! The visible state of an agent.

use crate::agent::Agent;
use farrier_hardware::inventory::nics;
use farrier_init::logging;
use farrier_linux::netlink;
use farrier_protocol::progress::Progress;

/// One look at the agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// Its node, or by what it would be known.
    pub node: String,
    /// Its addresses.
    pub addresses: String,
    /// What it does or waits for.
    pub doing: String,
    /// How far a deployment is.
    pub progress: Progress,
    /// What went wrong last.
    pub trouble: String,
}

impl View {
    /// As of now.
    pub fn of(agent: &Agent) -> Self {
        let node = agent.node().map(|node| node.uuid.to_string());
        let nics = || nics::mac_addresses(&nics::network_interfaces().unwrap_or_default());
        let addresses = netlink::addresses().unwrap_or_default();
        let addresses: Vec<_> =
            addresses.iter().map(|one| format!("{} {}/{}", one.interface, one.address, one.prefix)).collect();
        Self {
            node: node.unwrap_or_else(|_| format!("not known yet; hardware addresses {}", nics().join(", "))),
            addresses: if addresses.is_empty() { "none yet".to_owned() } else { addresses.join(", ") },
            doing: agent.status.doing(),
            progress: agent.progress.snapshot(),
            trouble: logging::last_trouble(),
        }
    }
}
