//! What firmware and boot loaders ask for: boot configurations by the address of a network card (section 7), and boot
//! files by whatever name their loader has for them (section 6.4).

use crate::conductor::Ramdisks;
use crate::error::Error;
use crate::evidence::boot_trace::{BootMark, BootPeer, BootStage, BootTrace, Reached};
use crate::evidence::diagnosis;
use farrier_conductor::interfaces::{BootClient, BootFile};
use farrier_conductor::model::{Activity, Family, MacAddress, Node, ProvisionState};
use std::net::IpAddr;
use std::time::Instant;
use uuid::Uuid;

impl Ramdisks {
    /// The boot configuration of this name, of the one node with a network card of this address. The reason for none
    /// stays secret: firmware has no credentials.
    pub async fn boot_config(&self, address: &str, name: &str) -> Option<String> {
        if name.starts_with('.') || name.contains(['/', '\\', '\0']) {
            return None;
        }
        let node = self.booting(&BootClient::Card(address.parse().ok()?)).await?;
        let settings = self.0.settings();
        if settings.restrict_boot_config && !boots_from_network(&node, settings.netboot_fallback) {
            return None;
        }
        let boot = self.0.services().hardware.boot(&node).ok()??;
        let config = boot.boot.get_boot_config(&node, name).await.ok()??;
        let bytes = config.len() as u64;
        let mark = self.mark(Reached { stage: BootStage::Script, what: name, bytes, total: bytes });
        self.0.services().boot_journal.reach_node(node.uuid, mark);
        Some(config)
    }

    /// The machine with this network card was given an address, according to its DHCP server, with the name by which
    /// it has asked for it: the agent's doctor may leave what it has found there.
    pub async fn address_leased(&self, card: &MacAddress, address: IpAddr, name: Option<&str>) {
        if let Some(node) = self.owner(card).await {
            let peer = BootPeer { address, node: Some(node) };
            let what = address.to_string();
            let reached = Reached { stage: BootStage::Address, what: &what, bytes: 0, total: 0 };
            let host_name = name.filter(|name| diagnosis::is_of_doctor(name)).map(str::to_owned);
            self.0.services().boot_journal.reach(peer, BootMark { host_name, ..self.mark(reached) });
        }
    }

    /// Records how far a machine is that boots from the network, for the server of its files. It is cheap, and is in
    /// the record of the node within a second or so, while [`run`](crate::Conductor::run) is polled.
    pub fn boot_reached(&self, peer: BootPeer, reached: Reached<'_>) {
        self.0.services().boot_journal.reach(peer, self.mark(reached));
    }

    /// Records how much of its virtual medium the machine of a node, or its BMC, has read.
    pub fn medium_read(&self, node: Uuid, bytes: u64, total: u64) {
        let mark = self.mark(Reached { stage: BootStage::Medium, what: "virtual medium", bytes, total });
        self.0.services().boot_journal.reach_node(node, mark);
    }

    fn mark(&self, Reached { stage, what, bytes, total }: Reached<'_>) -> BootMark {
        BootMark { stage, what: what.to_owned(), host_name: None, bytes, total, at: self.0.now() }
    }

    /// The boot file of this name, of the node that is known like this, and that node. The reason for none stays
    /// secret.
    pub async fn boot_file(&self, client: &BootClient, name: &str) -> Option<(Uuid, BootFile)> {
        let node = self.booting(client).await?;
        let boot = self.0.services().hardware.boot(&node).ok()??;
        match boot.boot.extension().get_boot_file(&node, name).await {
            Ok(file) => Some((node.uuid, file?)),
            Err(error) => {
                tracing::debug!(node = %node.uuid, "no boot file {name:?}: {error}");
                None
            }
        }
    }

    /// How far each machine has come that boots from the network and whose agent has not called.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub async fn awaited_boots(&self) -> Result<Vec<BootTrace>, Error> {
        self.0.services().write_boot_journal().await?;
        Ok(self.0.store().awaited_boots().await?)
    }

    /// The nodes whose machines were made ready to boot from the network, and may have files on servers that are not
    /// this conductor's.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub async fn nodes_with_boot_trace(&self) -> Result<Vec<Uuid>, Error> {
        Ok(self.0.store().with_boot_trace().await?)
    }

    /// Lets the boot interface of a node restore the files for the machine on servers that are not this
    /// conductor's, and returns whether it keeps anything there. While a conductor works on the node, it does nothing.
    ///
    /// # Errors
    ///
    /// [`Unresolved`](Error::Task), [`Interface`](Error::Task), [`Error::Store`]; what is there stays.
    pub async fn refresh_boot_files(&self, node: Uuid) -> Result<bool, Error> {
        let seen_at = Instant::now();
        let Some(record) = self.0.store().get(node).await? else { return Ok(false) };
        if record.node.reservation.is_some() {
            return Ok(true);
        }
        match self.0.services().hardware.boot(&record.node)? {
            Some(boot) => Ok(boot.boot.extension().refresh_boot_files(&record.node, seen_at).await?),
            None => Ok(false),
        }
    }

    /// The one node that is known like this.
    async fn booting(&self, client: &BootClient) -> Option<Node> {
        let node = match client {
            BootClient::Node(uuid) => *uuid,
            BootClient::Card(address) => self.owner(address).await?,
        };
        Some(self.0.store().get(node).await.ok()??.node)
    }

    async fn owner(&self, address: &MacAddress) -> Option<Uuid> {
        match self.0.store().owners(std::slice::from_ref(address)).await.ok()?[..] {
            [owner] => Some(owner),
            _ => None,
        }
    }
}

/// Whether a machine may be booting from the network: the ramdisk, as soon as it is on, before its node waits for it;
/// or its instance, at any time. With a fallback, one with an instance on its disk may too, and is sent there.
fn boots_from_network(node: &Node, has_fallback: bool) -> bool {
    let is_sent = has_fallback && node.provision_state == ProvisionState::Active;
    boots_ramdisk(node.provision_state) || node.driver_internal_info.netboots_instance || is_sent
}

fn boots_ramdisk(state: ProvisionState) -> bool {
    use Family::{Clean, Deploy, Inspect, Rescue, Service};
    let is_under_way = matches!(state.activity(), Activity::Work | Activity::Wait);
    is_under_way && matches!(state.family(), Some(Clean | Deploy | Inspect | Rescue | Service))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::NewNode;
    use farrier_conductor::model::clock::{Clock, SystemClock};

    #[test]
    fn c06_a_machine_with_an_instance_gets_the_script_that_sends_it_to_its_disk() {
        let mut node = Node::enrol(NewNode::default(), SystemClock.now());
        for (state, has_fallback, is_given) in [
            (ProvisionState::Active, true, true),
            (ProvisionState::Active, false, false),
            (ProvisionState::Available, true, false),
            (ProvisionState::Cleaning, false, true),
        ] {
            node.provision_state = state;
            assert_eq!(boots_from_network(&node, has_fallback), is_given, "{state} {has_fallback}");
        }
    }

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
