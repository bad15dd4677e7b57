//! Which networks operations have, and how long agents are waited for; the defaults are Ironic's.

use farrier_conductor::interfaces::NetworkKind;
use std::collections::BTreeMap;
use std::time::Duration;

/// The network of an operation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationNetwork {
    /// Name or UUID, for nodes that have none of their own (`[neutron]<kind>_network`).
    pub network: Option<String>,
    /// UUIDs of the security groups of its ports (`[neutron]<kind>_network_security_groups`).
    pub security_groups: Vec<String>,
}

/// How machines are connected by Neutron.
#[derive(Debug, Clone)]
pub struct NetworkSettings {
    /// The networks of operations.
    pub networks: BTreeMap<NetworkKind, OperationNetwork>,
    /// Whether cards that are not enabled for PXE are connected too, without an address (`[neutron]add_all_ports`).
    pub add_all_ports: bool,
    /// Whether a port that nothing has bound is a failure (`[neutron]fail_on_port_binding_failure`).
    pub fail_on_port_binding_failure: bool,
    /// Attempts to see an agent on a smart NIC (`[agent]neutron_agent_max_attempts`).
    pub neutron_agent_max_attempts: u32,
    /// Pause between two looks (`[agent]neutron_agent_status_retry_interval`).
    pub neutron_agent_status_retry_interval: Duration,
    /// The time for an agent on a smart NIC to apply a deleted port, which it does not report.
    pub neutron_agent_settle_time: Duration,
}

impl Default for NetworkSettings {
    fn default() -> Self {
        Self {
            networks: BTreeMap::new(),
            add_all_ports: false,
            fail_on_port_binding_failure: true,
            neutron_agent_max_attempts: 100,
            neutron_agent_status_retry_interval: Duration::from_secs(2),
            neutron_agent_settle_time: Duration::from_secs(30),
        }
    }
}
