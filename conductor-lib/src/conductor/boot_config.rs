//! Boot configurations, which firmware asks for by the address of its network card (section 7).

use super::Conductor;
use crate::model::{Activity, Family, MacAddress, ProvisionState};

impl Conductor {
    /// The boot configuration of this name, of the one node with a network card of this address. Why there is none is
    /// told to nobody: firmware cannot say who asks.
    pub(crate) async fn boot_config(&self, address: &str, name: &str) -> Option<String> {
        if name.starts_with('.') || name.contains(['/', '\\', '\0']) {
            return None;
        }
        let address: MacAddress = address.parse().ok()?;
        let owners = self.store().owners(&[address]).await.ok()?;
        let [owner] = owners[..] else { return None };
        let node = self.store().get(owner).await.ok()??.node;
        if self.settings().restrict_boot_config && !boots_ramdisk(node.provision_state) {
            return None;
        }
        let boot = self.services().hardware.boot(&node).ok()??;
        boot.boot.get_boot_config(&node, name).await.ok()?
    }
}

/// Whether a machine may be booting the ramdisk. It may ask as soon as it is on, before its node waits for it.
fn boots_ramdisk(state: ProvisionState) -> bool {
    use Family::{Clean, Deploy, Inspect, Rescue, Service};
    let is_under_way = matches!(state.activity(), Activity::Work | Activity::Wait);
    is_under_way && matches!(state.family(), Some(Clean | Deploy | Inspect | Rescue | Service))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ramdisk_is_booted_in_ten_states() {
        use ProvisionState::{
            CleanWait, Cleaning, DeployWait, Deploying, InspectWait, Inspecting, RescueWait, Rescuing,
            ServiceWait, Servicing,
        };
        let expected = [
            CleanWait,
            Cleaning,
            DeployWait,
            Deploying,
            InspectWait,
            Inspecting,
            RescueWait,
            Rescuing,
            ServiceWait,
            Servicing,
        ];
        for state in ProvisionState::ALL {
            assert_eq!(boots_ramdisk(*state), expected.contains(state), "{state}");
        }
    }
}
