//! Machines that only an operator in front of them can switch.
//!
//! What an operation wants of such a machine is a [pending action](pending_actions) of its operator, which
//! `farrier explain` shows. The heartbeat of the agent proves that the machine was switched; where no agent runs, the
//! operator reports it by the same requests that order the power of other machines.

mod management;
mod pending_actions;
mod power;

use crate::agent_power::{self, AgentPower};
use farrier_conductor::interfaces::Agents;
use farrier_conductor::{Drivers, HardwareType};
use management::ManualManagement;
use pending_actions::PendingActions;
use power::ManualPower;
use std::path::Path;
use std::sync::Arc;

/// The name of the interfaces.
const MANUAL: &str = "manual";

/// The name of the hardware type, and Ironic's for it.
pub const HARDWARE_TYPES: [&str; 2] = [MANUAL, "manual-management"];

/// The deploy interfaces of its machines, the best one first.
const DEPLOY: [&str; 5] = ["autodetect", "direct", "ramdisk", "bootc", "custom-agent"];

/// Adds the hardware type `manual`, whose machines are booted by the interfaces `boot`, the best one first, which have
/// to be added too. The pending actions are kept below `state_dir`. Nodes may have their agent reboot their machine, by
/// the power interface `agent`, which asks these `agents`.
pub fn with_manual(
    drivers: Drivers,
    agents: Arc<dyn Agents>,
    state_dir: &Path,
    boot: &[&'static str],
) -> Drivers {
    let pending_actions = PendingActions::below(state_dir);
    let drivers = drivers
        .power(MANUAL, ManualPower::new(pending_actions.clone()))
        .power(agent_power::NAME, AgentPower::new(agents))
        .management(MANUAL, ManualManagement::new(pending_actions));
    HARDWARE_TYPES.into_iter().fold(drivers, |drivers, name| {
        let manual = HardwareType::new(name).power([MANUAL, agent_power::NAME]).management([MANUAL, "noop"]);
        let manual = manual.boot(boot.iter().copied()).deploy(DEPLOY);
        let manual = manual.inspect(["agent", "no-inspect"]).raid(["no-raid", "agent"]);
        drivers.hardware_type(manual.rescue(["agent", "no-rescue"]))
    })
}

#[cfg(test)]
mod tests;
