//! The orders to fake machines.

use farrier_conductor::interfaces::BootDeviceSetting;
use farrier_conductor::model::{BootDevice, BootMode, Node, PowerState};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The orders to one of them.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub(super) power: PowerState,
    pub(super) boot_device: BootDeviceSetting,
    pub(super) boot_mode: BootMode,
    pub(super) secure_boot: bool,
    /// What is in its virtual drives: the URL in each that is not empty.
    pub(super) media: BTreeMap<BootDevice, String>,
}

/// All of them. Clones are the same ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Machines(Arc<Mutex<HashMap<Uuid, Machine>>>);

impl Machines {
    /// That of a node, as it is now. One without orders has the power state of the record.
    pub(super) fn of(&self, node: &Node) -> Machine {
        self.all().get(&node.uuid).cloned().unwrap_or_else(|| initial(node))
    }

    /// Records an order to that of a node.
    pub(super) fn update(&self, node: &Node, change: impl FnOnce(&mut Machine)) {
        change(self.all().entry(node.uuid).or_insert_with(|| initial(node)));
    }

    /// Forgets that of a node.
    pub(super) fn forget(&self, node: &Node) {
        self.all().remove(&node.uuid);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Uuid, Machine>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn initial(node: &Node) -> Machine {
    let boot_device = BootDeviceSetting { device: Some(BootDevice::Pxe), persistent: Some(false) };
    Machine {
        power: node.power_state.unwrap_or(PowerState::Off),
        boot_device,
        boot_mode: BootMode::Uefi,
        secure_boot: false,
        media: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::NewNode;
    use time::OffsetDateTime;

    #[test]
    fn a_machine_remembers_until_it_is_forgotten() {
        let machines = Machines::default();
        let mut node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
        assert_eq!(machines.of(&node).power, PowerState::Off);
        node.power_state = Some(PowerState::On);
        assert_eq!(machines.of(&node).power, PowerState::On);
        machines.update(&node, |machine| machine.power = PowerState::Off);
        assert_eq!(machines.of(&node).power, PowerState::Off);
        machines.forget(&node);
        assert_eq!(machines.of(&node).power, PowerState::On);
    }
}
