//! The connection limit of a listener. When it is reached, a new connection evicts another one, of the client that has
//! the most: one without a whole request before one with, and the oldest of these. A client that opens many connections
//! evicts its own alone.

use crate::network::Client;
use crate::network::shares::Shares;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::oneshot;

/// The open connections of a listener.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimit {
    table: Arc<Mutex<Table>>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Table {
    open: BTreeMap<u64, Entry>,
    shares: Shares,
    /// Connections so far.
    count: u64,
}

#[derive(Debug)]
struct Entry {
    client: Client,
    is_answered: Arc<AtomicBool>,
    /// Dropped to close the connection.
    _close: oneshot::Sender<()>,
}

/// The slot of one connection; free again when dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    limit: ConnectionLimit,
    number: u64,
    /// Whether a whole request of this connection is being answered.
    pub(crate) is_answered: Arc<AtomicBool>,
    /// Ends when the connection is evicted.
    pub(crate) evicted: oneshot::Receiver<()>,
}

impl ConnectionLimit {
    /// So many of them.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { table: Arc::default(), capacity: capacity.max(1) }
    }

    /// A slot for a connection from an address.
    pub(crate) fn admit(&self, peer: IpAddr) -> ConnectionSlot {
        let mut table = self.table();
        while table.open.len() >= self.capacity {
            let Some(victim) = table.victim() else { break };
            table.close(victim);
            tracing::debug!("a connection is closed to make room for another");
        }
        table.count += 1;
        let number = table.count;
        let (close, evicted) = oneshot::channel();
        let is_answered = Arc::new(AtomicBool::new(false));
        let client = Client::of(peer);
        table.shares.add(client, 1);
        table.open.insert(number, Entry { client, is_answered: Arc::clone(&is_answered), _close: close });
        ConnectionSlot { limit: self.clone(), number, is_answered, evicted }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Table {
    /// The connection to evict next.
    fn victim(&self) -> Option<u64> {
        let rank = |number: &u64, entry: &Entry| {
            let is_answered = entry.is_answered.load(Ordering::Relaxed);
            (self.shares.share(entry.client, 0), !is_answered, u64::MAX - number)
        };
        let victim = self.open.iter().max_by_key(|(number, entry)| rank(number, entry));
        victim.map(|(number, _)| *number)
    }

    /// Closes a connection, unless it has ended.
    fn close(&mut self, number: u64) {
        if let Some(entry) = self.open.remove(&number) {
            self.shares.remove(entry.client, 1);
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.limit.table().close(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(limit: &ConnectionLimit, peer: &str) -> ConnectionSlot {
        limit.admit(peer.parse().unwrap())
    }

    fn is_gone(slot: &mut ConnectionSlot) -> bool {
        slot.evicted.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn who_holds_the_most_slots_gives_one_up() {
        let limit = ConnectionLimit::new(3);
        let mut operator = admit(&limit, "192.0.2.1");
        let mut first = admit(&limit, "2001:db8::1");
        let mut second = admit(&limit, "2001:db8::2");
        let mut newcomer = admit(&limit, "192.0.2.3");
        assert!(is_gone(&mut first), "the oldest of the largest network");
        assert!(![&mut second, &mut operator, &mut newcomer].into_iter().any(is_gone));
    }

    #[test]
    fn n15_the_machines_of_one_network_lose_no_slot_to_a_single_address() {
        let limit = ConnectionLimit::new(48);
        let machines = (0..32).map(|n| admit(&limit, &format!("2001:db8::{n:x}")));
        let mut machines: Vec<_> = machines.collect();
        let greedy: Vec<_> = (0..100).map(|_| admit(&limit, "192.0.2.66")).collect();
        assert!(!machines.iter_mut().any(is_gone));
        drop(greedy);
        // A stranger with a network of its own.
        let _strangers: Vec<_> = (0..100).map(|n| admit(&limit, &format!("2001:db8:0:bad::{n:x}"))).collect();
        let gone = machines.iter_mut().filter_map(|slot| is_gone(slot).then_some(())).count();
        assert!(gone <= 9, "half of the places are theirs, and {gone} are gone");
        let mut operator = admit(&limit, "192.0.2.1");
        let _more: Vec<_> = (100..200).map(|n| admit(&limit, &format!("2001:db8:0:bad::{n:x}"))).collect();
        assert!(!is_gone(&mut operator));
    }

    #[test]
    fn a_connection_that_is_being_answered_goes_last_of_its_network_and_a_free_slot_is_taken_first() {
        let limit = ConnectionLimit::new(2);
        let mut busy = admit(&limit, "192.0.2.1");
        busy.is_answered.store(true, Ordering::Relaxed);
        let mut idle = admit(&limit, "192.0.2.1");
        let third = admit(&limit, "192.0.2.1");
        assert!(is_gone(&mut idle) && !is_gone(&mut busy));
        drop(third);
        let mut fourth = admit(&limit, "::ffff:192.0.2.1");
        assert!(!is_gone(&mut busy));
        fourth.is_answered.store(true, Ordering::Relaxed);
        let _fifth = admit(&limit, "192.0.2.9");
        assert!(is_gone(&mut busy) && !is_gone(&mut fourth), "a crowd of requests keeps nobody out");
    }
}
