//! How far machines came that boot from the network: whoever serves them sees each file that they load.
//!
//! A trace begins when a machine is made ready to boot, and is kept in memory by the conductor that serves it. It
//! tells in one line why no agent called.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use time::OffsetDateTime;
use uuid::Uuid;

/// Most clients whose node is not known yet; more are forgotten.
const STRANGERS: usize = 1024;

/// What machines load, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BootStage {
    /// An address.
    Address,
    /// A boot loader.
    Loader,
    /// What that is to boot.
    Script,
    /// A kernel, or a medium.
    Kernel,
    /// The ramdisk that goes with it.
    Ramdisk,
}

/// How far one of them is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootMark {
    /// Which one.
    pub stage: BootStage,
    /// Its name, or the address.
    pub what: String,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Its size in bytes.
    pub total: u64,
    /// When that was so.
    pub at: OffsetDateTime,
}

/// How far a machine came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BootTrace(Vec<BootMark>);

impl BootTrace {
    /// Takes note of how far it is. What it loads again, as after a failure, is told anew, with what comes after it.
    fn reach(&mut self, mark: BootMark) {
        let goes_on = |known: &BootMark| {
            known.stage == mark.stage && known.what == mark.what && known.bytes <= mark.bytes
        };
        if !self.0.iter().any(goes_on) {
            // A loader may have several files, and addresses are asked for by firmware and loader.
            let begins_anew = mark.stage >= BootStage::Kernel;
            self.0.retain(|known| known.stage < mark.stage || !begins_anew && known.stage > mark.stage);
        }
        self.0.retain(|known| known.stage != mark.stage);
        self.0.push(mark);
        self.0.sort_by_key(|mark| mark.stage);
    }

    /// When anything was heard of the machine last.
    fn heard(&self) -> Option<OffsetDateTime> {
        self.0.iter().map(|mark| mark.at).max()
    }

    /// In words, at this time; nothing when nothing was heard.
    pub fn told(&self, now: OffsetDateTime) -> Option<String> {
        let silent = (now - self.heard()?).whole_seconds();
        Some(format!("{self}, silent for {silent} s"))
    }
}

impl fmt::Display for BootTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&words.join(", "))
    }
}

impl fmt::Display for BootMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stage, what, bytes, total, .. } = self;
        let percent = (bytes * 100).checked_div(*total).unwrap_or(100);
        match stage {
            BootStage::Address => write!(f, "address {what} leased"),
            BootStage::Loader if percent == 100 => write!(f, "loader {what} fetched"),
            BootStage::Loader => write!(f, "loader {what} {percent} %"),
            BootStage::Script => f.write_str("script fetched"),
            BootStage::Kernel => write!(f, "kernel {percent} %"),
            BootStage::Ramdisk => write!(f, "initramfs {percent} %"),
        }
    }
}

/// Who loads something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootPeer {
    /// Its address.
    pub address: IpAddr,
    /// Its node, where that is known by what it loads.
    pub node: Option<Uuid>,
}

/// The traces of all nodes.
#[derive(Debug, Default)]
pub struct BootTraces(Mutex<Traces>);

#[derive(Debug, Default)]
struct Traces {
    nodes: HashMap<Uuid, BootTrace>,
    /// Whose an address is, as it last told; or what it has loaded before it did.
    peers: HashMap<IpAddr, Peer>,
}

#[derive(Debug)]
enum Peer {
    Known(Uuid),
    Stranger(Vec<BootMark>),
}

impl BootTraces {
    /// A machine is made ready to boot.
    pub(crate) fn begin(&self, node: Uuid) {
        self.lock().nodes.insert(node, BootTrace::default());
    }

    /// A node is gone, or its machine is not to boot from the network.
    pub(crate) fn forget(&self, node: Uuid) {
        self.lock().nodes.remove(&node);
    }

    /// How far the machine of a node came.
    pub fn of(&self, node: Uuid) -> BootTrace {
        self.lock().nodes.get(&node).cloned().unwrap_or_default()
    }

    /// Takes note of how far somebody is. Loaders are the same for all, so whose they are is known by what comes next.
    pub fn reach(&self, peer: BootPeer, mark: BootMark) {
        let mut traces = self.lock();
        let Traces { nodes, peers } = &mut *traces;
        if let Some(node) = peer.node {
            let before = match peers.insert(peer.address, Peer::Known(node)) {
                Some(Peer::Stranger(marks)) => marks,
                _ => Vec::new(),
            };
            if let Some(trace) = nodes.get_mut(&node) {
                before.into_iter().chain([mark]).for_each(|mark| trace.reach(mark));
            }
        } else {
            match peers.get_mut(&peer.address) {
                Some(Peer::Known(node)) => {
                    if let Some(trace) = nodes.get_mut(node) {
                        trace.reach(mark);
                    }
                }
                Some(Peer::Stranger(marks)) => {
                    marks.retain(|known| known.stage != mark.stage);
                    marks.push(mark);
                }
                None => drop(peers.insert(peer.address, Peer::Stranger(vec![mark]))),
            }
        }
        if peers.len() > STRANGERS {
            peers.clear();
        }
    }

    /// Takes note of how far the machine of a node is, of which the address is not told.
    pub fn reach_node(&self, node: Uuid, mark: BootMark) {
        if let Some(trace) = self.lock().nodes.get_mut(&node) {
            trace.reach(mark);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Traces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::Duration;

    fn mark(stage: BootStage, what: &str, bytes: u64, total: u64) -> BootMark {
        BootMark { stage, what: what.into(), bytes, total, at: OffsetDateTime::UNIX_EPOCH }
    }

    #[test]
    fn a_trace_tells_where_a_machine_stopped() {
        let (traces, node) = (BootTraces::default(), Uuid::new_v4());
        let stranger = BootPeer { address: "192.0.2.50".parse().unwrap(), node: None };
        let known = BootPeer { node: Some(node), ..stranger };
        let told = || traces.of(node).told(OffsetDateTime::UNIX_EPOCH + Duration::seconds(35));
        // Nobody waits for it.
        traces.reach(known, mark(BootStage::Script, "config", 9, 9));
        assert_eq!(told(), None);
        traces.begin(node);
        assert_eq!(told(), None);
        traces.reach(stranger, mark(BootStage::Loader, "pxelinux.0", 5, 10));
        assert_eq!(told().as_deref(), Some("loader pxelinux.0 50 %, silent for 35 s"));
        traces.reach(stranger, mark(BootStage::Loader, "pxelinux.0", 10, 10));
        traces.reach_node(node, mark(BootStage::Address, "192.0.2.50", 0, 0));
        traces.reach(known, mark(BootStage::Script, "config", 9, 9));
        traces.reach(known, mark(BootStage::Kernel, "k", 7, 7));
        traces.reach(known, mark(BootStage::Ramdisk, "r", 43, 100));
        let all = "address 192.0.2.50 leased, loader pxelinux.0 fetched, script fetched, kernel 100 %, initramfs 43 %";
        assert_eq!(told().as_deref(), Some(&*format!("{all}, silent for 35 s")));
        // It tries again.
        traces.reach(known, mark(BootStage::Kernel, "k", 1, 7));
        assert!(told().unwrap().contains("script fetched, kernel 14 %, silent"), "{told:?}", told = told());
        traces.begin(node);
        assert_eq!(told(), None);
        traces.forget(node);
        traces.reach(known, mark(BootStage::Kernel, "k", 1, 7));
        assert_eq!(told(), None);
    }

    #[test]
    fn what_a_stranger_loaded_is_his_once_he_is_known() {
        let (traces, node) = (BootTraces::default(), Uuid::new_v4());
        traces.begin(node);
        let stranger = BootPeer { address: "2001:db8::50".parse().unwrap(), node: None };
        traces.reach(stranger, mark(BootStage::Loader, "bootx64.efi", 9, 9));
        traces.reach(stranger, mark(BootStage::Loader, "grubx64.efi", 9, 9));
        traces.reach(BootPeer { node: Some(node), ..stranger }, mark(BootStage::Script, "config", 9, 9));
        assert_eq!(traces.of(node).to_string(), "loader grubx64.efi fetched, script fetched");
        for n in 0..=STRANGERS as u128 {
            let address = IpAddr::V6(n.into());
            traces.reach(BootPeer { address, node: None }, mark(BootStage::Loader, "x", 1, 1));
        }
        assert!(traces.lock().peers.len() <= STRANGERS);
    }
}
