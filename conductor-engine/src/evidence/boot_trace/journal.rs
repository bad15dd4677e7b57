//! What was served since it was last written down.
//!
//! Anybody may ask for files, as often as they like, so a journal has a bound in memory, and its writer stores it
//! at its own interval, for all nodes at once: a file that is sent in a thousand blocks is one mark.

use crate::evidence::boot_trace::{BootMark, BootPeer, BootTrace};
use std::collections::HashMap;
use std::mem;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use uuid::Uuid;

/// Most addresses that are known; with more, all are forgotten.
const PEERS: usize = 1024;

/// The journal of one conductor.
#[derive(Debug, Default)]
pub(crate) struct BootJournal {
    pages: Mutex<Pages>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Pages {
    /// How far machines came since it was written down.
    nodes: HashMap<Uuid, BootTrace>,
    /// Whose an address is, as it last told; or what it has loaded before it did.
    peers: HashMap<IpAddr, Peer>,
}

#[derive(Debug)]
enum Peer {
    Known(Uuid),
    Stranger(BootTrace),
}

impl BootJournal {
    /// Takes note of how far somebody is. Loaders are the same for all, so whose they are is known by what comes next.
    pub(crate) fn reach(&self, peer: BootPeer, mark: BootMark) {
        let mut pages = self.pages();
        let Pages { nodes, peers } = &mut *pages;
        let node = match (peer.node, peers.get_mut(&peer.address)) {
            (Some(node), _) => node,
            (None, Some(Peer::Known(node))) => *node,
            (None, Some(Peer::Stranger(trace))) => return trace.reach(mark),
            (None, None) => {
                if peers.len() == PEERS {
                    peers.clear();
                }
                let mut trace = BootTrace::default();
                trace.reach(mark);
                peers.insert(peer.address, Peer::Stranger(trace));
                return;
            }
        };
        if peers.len() == PEERS && !peers.contains_key(&peer.address) {
            peers.clear();
        }
        let trace = nodes.entry(node).or_default();
        if let Some(Peer::Stranger(before)) = peers.insert(peer.address, Peer::Known(node)) {
            before.0.into_iter().for_each(|mark| trace.reach(mark));
        }
        trace.reach(mark);
        self.changed.notify_one();
    }

    /// Takes note of how far the machine of a node is, of which the address is not told.
    pub(crate) fn reach_node(&self, node: Uuid, mark: BootMark) {
        self.pages().nodes.entry(node).or_default().reach(mark);
        self.changed.notify_one();
    }

    /// Forgets what was not written down of a node: it begins anew.
    pub(crate) fn forget(&self, node: Uuid) {
        self.pages().nodes.remove(&node);
    }

    /// Waits until there is something to be written down.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Takes what is to be written down.
    pub(crate) fn take(&self) -> Vec<(Uuid, BootTrace)> {
        mem::take(&mut self.pages().nodes).into_iter().collect()
    }

    /// Puts back what could not be written down. What was told meanwhile comes after it.
    pub(crate) fn put_back(&self, reached: Vec<(Uuid, BootTrace)>) {
        let mut pages = self.pages();
        for (node, mut trace) in reached {
            let since = pages.nodes.remove(&node).unwrap_or_default();
            since.0.into_iter().for_each(|mark| trace.reach(mark));
            pages.nodes.insert(node, trace);
        }
        self.changed.notify_one();
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::BootStage;
    use super::*;
    use time::OffsetDateTime;

    fn mark(stage: BootStage, what: &str, bytes: u64) -> BootMark {
        BootMark {
            stage,
            what: what.into(),
            host_name: None,
            bytes,
            total: 9,
            at: OffsetDateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn what_a_stranger_loaded_is_his_once_he_is_known() {
        let (journal, node) = (BootJournal::default(), Uuid::new_v4());
        let stranger = BootPeer { address: "2001:db8::50".parse().unwrap(), node: None };
        journal.reach(stranger, mark(BootStage::Loader, "bootx64.efi", 9));
        journal.reach(stranger, mark(BootStage::Loader, "grubx64.efi", 9));
        assert!(journal.take().is_empty());
        journal.reach(BootPeer { node: Some(node), ..stranger }, mark(BootStage::Script, "config", 9));
        journal.reach(stranger, mark(BootStage::Kernel, "vmlinuz", 9));
        let taken = journal.take();
        assert_eq!(taken.len(), 1);
        assert_eq!(taken[0].1.to_string(), "loader grubx64.efi fetched, script fetched, kernel 100 %");
        journal.reach_node(node, mark(BootStage::Script, "config", 9));
        journal.forget(node);
        assert!(journal.take().is_empty());
    }

    /// Two DHCP servers may give one address to two machines.
    #[test]
    fn an_address_is_that_of_the_machine_that_used_it_last() {
        let (journal, first, second) = (BootJournal::default(), Uuid::new_v4(), Uuid::new_v4());
        let peer = |node| BootPeer { address: "192.0.2.101".parse().unwrap(), node };
        journal.reach(peer(Some(first)), mark(BootStage::Address, "192.0.2.101", 0));
        journal.reach(peer(Some(second)), mark(BootStage::Address, "192.0.2.101", 0));
        journal.reach(peer(None), mark(BootStage::Loader, "pxelinux.0", 9));
        let told: HashMap<_, _> = journal.take().into_iter().collect();
        assert_eq!(told[&first].to_string(), "address 192.0.2.101 leased");
        assert_eq!(told[&second].to_string(), "address 192.0.2.101 leased, loader pxelinux.0 fetched");
    }

    #[test]
    fn who_asks_for_everything_from_everywhere_takes_no_more_room() {
        let (journal, node) = (BootJournal::default(), Uuid::new_v4());
        for n in 0..PEERS as u128 * 3 {
            let node = (n % 2 == 0).then_some(node);
            let address = IpAddr::V6(n.into());
            journal.reach(BootPeer { address, node }, mark(BootStage::Loader, &n.to_string(), n as u64 % 9));
        }
        assert!(journal.pages().peers.len() <= PEERS);
        assert_eq!(journal.take()[0].1.marks().len(), 1);
    }

    #[test]
    fn e17_what_could_not_be_written_down_comes_before_what_was_told_meanwhile() {
        let (journal, node) = (BootJournal::default(), Uuid::max());
        journal.reach_node(node, mark(BootStage::Loader, "loader", 9));
        let taken = journal.take();
        journal.reach_node(node, mark(BootStage::Kernel, "kernel", 3));
        journal.put_back(taken);
        let taken = journal.take();
        let stages: Vec<_> = taken[0].1.marks().iter().map(|mark| mark.stage).collect();
        assert_eq!(stages, [BootStage::Loader, BootStage::Kernel]);
        assert!(journal.take().is_empty());
    }
}
