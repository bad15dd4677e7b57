//! The memory that the bodies of all requests share, beside the small part that each has for itself. When none is left,
//! the client that holds the most gives up its largest body.

use crate::network::Client;
use crate::network::shares::Shares;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Memory that all bodies of a listener share.
#[derive(Debug, Clone)]
pub(crate) struct BodyMemory(Arc<Mutex<Table>>);

#[derive(Debug)]
struct Table {
    free: usize,
    shares: Shares,
    bodies: BTreeMap<u64, Held>,
    /// Requests so far.
    count: u64,
}

/// What one body holds.
#[derive(Debug)]
struct Held {
    client: Client,
    bytes: usize,
    is_whole: bool,
    given_up: Arc<Notify>,
}

/// The request that a body belongs to; what it took is free again when the last clone of this is gone.
#[derive(Debug, Clone)]
pub(crate) struct Reception(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    memory: BodyMemory,
    number: u64,
    /// Whether it lacked memory.
    is_short: AtomicBool,
    given_up: Arc<Notify>,
    /// Set when the body has come to its end.
    is_whole: Arc<AtomicBool>,
}

impl BodyMemory {
    /// So many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let (shares, bodies) = Default::default();
        Self(Arc::new(Mutex::new(Table { free: bytes, shares, bodies, count: 0 })))
    }

    /// A request of a client, on a connection; `is_whole` is set at the end of its body.
    pub(crate) fn reception(&self, peer: IpAddr, is_whole: Arc<AtomicBool>) -> Reception {
        let mut table = self.table();
        table.count += 1;
        let (number, given_up) = (table.count, Arc::<Notify>::default());
        let (client, waker) = (Client::of(peer), Arc::clone(&given_up));
        table.bodies.insert(number, Held { client, bytes: 0, is_whole: false, given_up: waker });
        let (memory, is_short) = (self.clone(), AtomicBool::default());
        Reception(Arc::new(Inner { memory, number, is_short, given_up, is_whole }))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Reserves this many bytes for a body; larger bodies of clients with more give way.
    fn grow(&mut self, number: u64, bytes: usize) -> bool {
        let Some(held) = self.bodies.get(&number) else { return false };
        let (client, lacks) = (held.client, bytes.saturating_sub(held.bytes));
        while self.free < lacks {
            let Some((victim, greedy)) = self.victim() else { return false };
            let of_greedy = self.shares.share(greedy, 0);
            if victim == number || of_greedy <= self.shares.share(client, as_amount(lacks)) {
                return false;
            }
            self.forget(victim);
        }
        self.free -= lacks;
        self.shares.add(client, as_amount(lacks));
        if let Some(held) = self.bodies.get_mut(&number) {
            held.bytes += lacks;
        }
        true
    }

    /// Which body is given up first: one of who has the most, the largest that is still coming.
    fn victim(&self) -> Option<(u64, Client)> {
        let holding = self.bodies.iter().filter(|(_, held)| held.bytes > 0);
        let victim =
            holding.max_by_key(|(_, held)| (self.shares.share(held.client, 0), !held.is_whole, held.bytes));
        victim.map(|(number, held)| (*number, held.client))
    }

    /// A body holds nothing any more, and its request is notified.
    fn forget(&mut self, number: u64) {
        if let Some(held) = self.bodies.remove(&number) {
            self.free += held.bytes;
            self.shares.remove(held.client, as_amount(held.bytes));
            held.given_up.notify_one();
        }
    }
}

impl Reception {
    /// Whether there was no memory for it.
    pub(crate) fn is_short(&self) -> bool {
        self.0.is_short.load(Ordering::Relaxed)
    }

    /// Ends when another body got its memory.
    pub(crate) async fn given_up(&self) {
        self.0.given_up.notified().await;
    }

    /// The body has come to its end.
    pub(crate) fn is_whole(&self) {
        self.0.is_whole.store(true, Ordering::Relaxed);
        if let Some(held) = self.0.memory.table().bodies.get_mut(&self.0.number) {
            held.is_whole = true;
        }
    }

    /// Takes memory until this has so many bytes.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let is_taken = self.0.memory.table().grow(self.0.number, bytes);
        if !is_taken {
            self.0.is_short.store(true, Ordering::Relaxed);
        }
        is_taken
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.memory.table().forget(self.number);
    }
}

fn as_amount(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    const MIB: usize = 1 << 20;

    fn reception(memory: &BodyMemory, peer: &str) -> Reception {
        memory.reception(peer.parse().unwrap(), Arc::default())
    }

    #[test]
    fn bodies_share_a_memory_and_give_it_back() {
        let memory = BodyMemory::new(10 << 10);
        let (one, other) = (reception(&memory, "192.0.2.1"), reception(&memory, "192.0.2.2"));
        assert!(one.take(5 << 10) && one.take(1));
        assert!(other.take(5 << 10) && !other.take(6 << 10));
        assert!(other.is_short() && !one.is_short());
        drop(one);
        assert!(other.take(10 << 10));
    }

    #[test]
    fn n15_the_largest_body_of_who_has_the_most_gives_way() {
        let memory = BodyMemory::new(128 * MIB);
        let greedy: Vec<_> = (0..8).map(|_| reception(&memory, "192.0.2.66")).collect();
        assert!(greedy.iter().all(|body| body.take(16 * MIB)));
        greedy[1..].iter().for_each(Reception::is_whole);
        let modest = reception(&memory, "192.0.2.1");
        assert!(modest.take(2 * MIB));
        let given_up: Vec<_> = greedy.iter().map(|body| body.given_up().now_or_never().is_some()).collect();
        assert!(given_up[0] && !given_up[1..].contains(&true), "{given_up:?}");
        assert!(!greedy[0].take(1), "what was given up does not come back");
        assert!(reception(&memory, "192.0.2.66").take(8 * MIB), "there is room");
        assert!(!reception(&memory, "192.0.2.66").take(16 * MIB), "no client has more than this one");
        assert!(modest.take(16 * MIB), "it has its part");
    }

    #[test]
    fn n15_a_stranger_with_a_network_is_one_client() {
        let memory = BodyMemory::new(128 * MIB);
        let strangers: Vec<_> = (0..8).map(|n| reception(&memory, &format!("2001:db8:0:bad::{n}"))).collect();
        assert!(strangers.iter().all(|body| body.take(16 * MIB)));
        for modest in ["192.0.2.1", "2001:db8::1"] {
            assert!(reception(&memory, modest).take(16 * MIB), "{modest}");
        }
    }
}
