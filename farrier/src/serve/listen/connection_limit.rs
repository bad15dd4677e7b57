//! The connection limit of a listener. When it is reached, a new connection turns one away, of the client that has the
//! most: one without a whole request before one with, and the oldest of these. A client that opens many connections loses
//! its own alone. A connection that is turned away is told so by its next answer; the number of these has a limit too,
//! beyond which the oldest is closed without a word.

use crate::network::Client;
use crate::network::shares::Shares;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// How many connections may be told that they are turned away, for each that the listener has room for.
const LEAVING: usize = 4;

/// The open connections of a listener.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimit {
    table: Arc<Mutex<Table>>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Table {
    open: BTreeMap<u64, Entry>,
    /// Those that are turned away and have not left. The receiver of a sender that is dropped is closed.
    leaving: BTreeMap<u64, watch::Sender<bool>>,
    shares: Shares,
    /// Connections so far.
    count: u64,
}

#[derive(Debug)]
struct Entry {
    client: Client,
    is_answered: Arc<AtomicBool>,
    turned_away: watch::Sender<bool>,
}

/// The slot of one connection; free again when dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    limit: ConnectionLimit,
    number: u64,
    /// Whether a connection was turned away for this one, or this one is.
    pub(crate) is_full: bool,
    /// Whether a whole request of this connection is being answered.
    pub(crate) is_answered: Arc<AtomicBool>,
    /// Whether the connection is turned away; without a sender it is to be closed at once.
    pub(crate) turned_away: watch::Receiver<bool>,
}

impl ConnectionLimit {
    /// So many of them.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { table: Arc::default(), capacity: capacity.max(1) }
    }

    /// A slot for a connection from an address. The new connection may be the one that is turned away.
    pub(crate) fn admit(&self, peer: IpAddr) -> ConnectionSlot {
        let mut table = self.table();
        table.count += 1;
        let number = table.count;
        let (sender, turned_away) = watch::channel(false);
        let is_answered = Arc::new(AtomicBool::new(false));
        let client = Client::of(peer);
        table.shares.add(client, 1);
        let entry = Entry { client, is_answered: Arc::clone(&is_answered), turned_away: sender };
        table.open.insert(number, entry);
        let is_full = table.open.len() > self.capacity;
        while table.open.len() > self.capacity {
            let Some(victim) = table.victim() else { break };
            table.turn_away(victim, self.capacity * LEAVING);
            tracing::debug!("a connection is turned away to make room for another");
        }
        ConnectionSlot { limit: self.clone(), number, is_full, is_answered, turned_away }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Table {
    /// The connection to turn away next.
    fn victim(&self) -> Option<u64> {
        let rank = |number: &u64, entry: &Entry| {
            let is_answered = entry.is_answered.load(Ordering::Relaxed);
            (self.shares.share(entry.client, 0), !is_answered, u64::MAX - number)
        };
        let victim = self.open.iter().max_by_key(|(number, entry)| rank(number, entry));
        victim.map(|(number, _)| *number)
    }

    /// Turns a connection away. Of more than `most` that do not leave, the oldest is closed.
    fn turn_away(&mut self, number: u64, most: usize) {
        let Some(entry) = self.take(number) else { return };
        entry.turned_away.send_replace(true);
        self.leaving.insert(number, entry.turned_away);
        if self.leaving.len() > most {
            self.leaving.pop_first();
        }
    }

    /// Takes a connection out, unless it has ended.
    fn take(&mut self, number: u64) -> Option<Entry> {
        let entry = self.open.remove(&number)?;
        self.shares.remove(entry.client, 1);
        Some(entry)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut table = self.limit.table();
        table.take(self.number);
        table.leaving.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(limit: &ConnectionLimit, peer: &str) -> ConnectionSlot {
        limit.admit(peer.parse().unwrap())
    }

    fn is_gone(slot: &mut ConnectionSlot) -> bool {
        *slot.turned_away.borrow()
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

    #[test]
    fn f36_a_client_whose_requests_are_all_being_answered_loses_none_to_its_next_connection() {
        let limit = ConnectionLimit::new(2);
        let mut busy = [(); 2].map(|()| admit(&limit, "192.0.2.1"));
        busy.iter().for_each(|slot| slot.is_answered.store(true, Ordering::Relaxed));
        let mut newcomer = admit(&limit, "192.0.2.1");
        assert!(is_gone(&mut newcomer) && !busy.iter_mut().any(is_gone));
    }

    #[test]
    fn f36_those_that_are_turned_away_and_do_not_leave_have_a_limit() {
        let limit = ConnectionLimit::new(2);
        let slots: Vec<_> = (0..30).map(|_| admit(&limit, "192.0.2.1")).collect();
        let closed = slots.iter().filter(|slot| slot.turned_away.has_changed().is_err()).count();
        assert_eq!(closed, 30 - 2 - 2 * LEAVING);
        drop(slots);
        let table = limit.table();
        assert!(table.open.is_empty() && table.leaving.is_empty());
    }
}
