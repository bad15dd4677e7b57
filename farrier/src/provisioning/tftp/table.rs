//! The transfers under way. A sender may be forged, so one that has not answered yet has a slot apart: it lasts a few
//! seconds, and the oldest goes when there are too many. Who has answered is there, and has a slot for as long as the
//! transfer lasts.

use crate::network::Client;
use crate::network::shares::Shares;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// Transfers at a time for one address. Firmware asks for one file after the other.
pub(super) const OF_ADDRESS: u64 = 8;
/// Transfers at a time for one network.
const OF_NETWORK: u64 = 256;
/// Transfers at a time for all.
pub(super) const OF_ALL: usize = 512;
/// Senders at a time that have not answered.
pub(super) const OF_STRANGERS: usize = 256;

/// The transfers under way, by client. Clones are the same ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Table(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    transfers: HashMap<SocketAddr, Transfer>,
    strangers: Room,
    known: Room,
    /// Requests so far.
    count: u64,
}

/// What one kind of clients holds.
#[derive(Debug, Default)]
struct Room {
    shares: Shares,
    taken: usize,
}

#[derive(Debug)]
struct Transfer {
    client: Client,
    number: u64,
    has_answered: bool,
    again: Arc<Notify>,
    /// Dropped to end the transfer.
    _leave: oneshot::Sender<()>,
}

/// The slot of one transfer; free again when dropped.
#[derive(Debug)]
pub(super) struct TransferSlot {
    table: Table,
    sender: SocketAddr,
    number: u64,
    /// Its client asks again, before it has answered.
    pub(super) again: Arc<Notify>,
}

impl Table {
    /// A slot for a transfer to a sender, and what ends when another transfer gets it; nothing where the sender has one
    /// already, whose transfer is notified.
    pub(super) fn admit(&self, sender: SocketAddr) -> Option<(TransferSlot, oneshot::Receiver<()>)> {
        let mut inner = self.inner();
        if let Some(transfer) = inner.transfers.get(&sender) {
            transfer.again.notify_one();
            return None;
        }
        let client = Client::of(sender.ip());
        if inner.strangers.shares.of_address(client) >= OF_ADDRESS {
            inner.remove_oldest(|transfer| {
                !transfer.has_answered && transfer.client.address == client.address
            });
        }
        if inner.strangers.taken >= OF_STRANGERS {
            inner.remove_oldest(|transfer| !transfer.has_answered);
        }
        inner.count += 1;
        let (number, again) = (inner.count, Arc::<Notify>::default());
        let (leave, given_away) = oneshot::channel();
        let transfer =
            Transfer { client, number, has_answered: false, again: Arc::clone(&again), _leave: leave };
        inner.strangers.add(client);
        inner.transfers.insert(sender, transfer);
        Some((TransferSlot { table: self.clone(), sender, number, again }, given_away))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The transfer that has a slot, unless it was given away.
    fn transfer(&mut self, sender: SocketAddr, number: u64) -> Option<&mut Transfer> {
        self.transfers.get_mut(&sender).filter(|transfer| transfer.number == number)
    }

    /// A client has answered. Whether it may have a slot, which one with more of them gives up when there is none.
    fn welcome(&mut self, sender: SocketAddr, number: u64) -> bool {
        let Some(Transfer { client, has_answered, .. }) = self.transfer(sender, number) else { return false };
        let client = *client;
        if std::mem::replace(has_answered, true) {
            return true;
        }
        self.strangers.remove(client);
        self.known.add(client);
        let shares = &self.known.shares;
        if shares.of_address(client) > OF_ADDRESS || shares.of_network(client) > OF_NETWORK {
            self.remove(sender);
            return false;
        }
        if self.known.taken > OF_ALL {
            let rank = |transfer: &Transfer| {
                (self.known.shares.share(transfer.client, 0), u64::MAX - transfer.number)
            };
            let known = self.transfers.iter().filter(|(_, transfer)| transfer.has_answered);
            let victim = known.max_by_key(|(_, transfer)| rank(transfer)).map(|(victim, _)| *victim);
            victim.into_iter().for_each(|victim| self.remove(victim));
        }
        self.transfer(sender, number).is_some()
    }

    fn remove_oldest(&mut self, is_meant: impl Fn(&Transfer) -> bool) {
        let meant = self.transfers.iter().filter(|(_, transfer)| is_meant(transfer));
        if let Some(oldest) = meant.min_by_key(|(_, transfer)| transfer.number).map(|(sender, _)| *sender) {
            self.remove(oldest);
        }
    }

    fn remove(&mut self, sender: SocketAddr) {
        if let Some(transfer) = self.transfers.remove(&sender) {
            let room = if transfer.has_answered { &mut self.known } else { &mut self.strangers };
            room.remove(transfer.client);
        }
    }
}

impl Room {
    fn add(&mut self, client: Client) {
        self.taken += 1;
        self.shares.add(client, 1);
    }

    fn remove(&mut self, client: Client) {
        self.taken -= 1;
        self.shares.remove(client, 1);
    }
}

impl TransferSlot {
    /// The client has answered. Whether the transfer continues.
    pub(super) fn answered(&self) -> bool {
        self.table.inner().welcome(self.sender, self.number)
    }
}

impl Drop for TransferSlot {
    fn drop(&mut self) {
        let mut inner = self.table.inner();
        if inner.transfer(self.sender, self.number).is_some() {
            inner.remove(self.sender);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(table: &Table, sender: &str) -> Option<TransferSlot> {
        table.admit(sender.parse().unwrap()).map(|(slot, given_away)| {
            std::mem::forget(given_away);
            slot
        })
    }

    fn taken(table: &Table) -> (usize, usize) {
        let inner = table.inner();
        (inner.strangers.taken, inner.known.taken)
    }

    #[test]
    fn n14_senders_that_have_not_answered_keep_nobody_out() {
        let table = Table::default();
        let forged: Vec<_> = (0..5_000)
            .filter_map(|n| admit(&table, &format!("10.0.{}.{}:69", n / 250, n % 250 + 1)))
            .collect();
        assert_eq!((forged.len(), taken(&table)), (5_000, (OF_STRANGERS, 0)));
        assert!(!forged[0].answered(), "its slot is another's");
        let machine = admit(&table, "192.0.2.1:2070").unwrap();
        assert!(admit(&table, "192.0.2.1:2070").is_none(), "it has one");
        assert!(machine.answered() && machine.answered());
        // Even one in its own name.
        let own: Vec<_> =
            (0..100).filter_map(|n| admit(&table, &format!("192.0.2.1:{}", 3000 + n))).collect();
        assert!(machine.answered());
        drop((forged, own, machine));
        assert_eq!(taken(&table), (0, 0));
    }

    #[test]
    fn n14_who_has_answered_has_its_share() {
        let table = Table::default();
        let answered = |sender: String| admit(&table, &sender).filter(TransferSlot::answered);
        let greedy: Vec<_> = (1..100).filter_map(|n| answered(format!("192.0.2.66:{n}"))).collect();
        assert_eq!(greedy.len(), 8);
        // All machines of a provisioning network; and a stranger with as many addresses as he likes.
        let machines: Vec<_> = (1..=200).filter_map(|n| answered(format!("[2001:db8::{n:x}]:69"))).collect();
        assert_eq!(machines.len(), 200);
        let strangers: Vec<_> =
            (0..1_000).filter_map(|n| answered(format!("[2001:db8:0:bad::{n:x}]:69"))).collect();
        assert_eq!(strangers.len(), 256);
        assert_eq!(taken(&table).1, 464);
        let late: Vec<_> = (1..=100).filter_map(|n| answered(format!("198.51.100.{n}:69"))).collect();
        assert_eq!((late.len(), taken(&table).1), (100, OF_ALL));
        assert!(machines.iter().chain(&late).all(TransferSlot::answered), "strangers gave way");
    }
}
