//! A semaphore that is fair to clients. An address has an eighth of the permits at most, and a network half of them; a
//! permit that is released goes to the client who has the fewest, and to the first of these.

use crate::network::Client;
use crate::network::shares::Shares;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// An address has one permit of so many.
const PART_OF_ADDRESS: usize = 8;
/// A network has one permit of so many.
const PART_OF_NETWORK: usize = 2;

/// The semaphore. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct FairSemaphore {
    table: Arc<Mutex<Table>>,
    total: usize,
}

#[derive(Debug, Default)]
struct Table {
    taken: usize,
    shares: Shares,
    waiting: BTreeMap<u64, Waiting>,
    /// Clients that have waited so far.
    count: u64,
}

#[derive(Debug)]
struct Waiting {
    client: Client,
    permit: oneshot::Sender<FairPermit>,
}

/// One permit, released when dropped.
#[derive(Debug)]
pub(crate) struct FairPermit {
    semaphore: FairSemaphore,
    client: Client,
}

impl FairSemaphore {
    /// So many at a time.
    pub(crate) fn new(total: usize) -> Self {
        Self { table: Arc::default(), total: total.max(1) }
    }

    /// Waits for a permit. A client that stops waiting loses its place in the queue alone.
    pub(crate) async fn take(&self, peer: IpAddr) -> FairPermit {
        let client = Client::of(peer);
        loop {
            let permit = self.wait(client);
            self.give();
            // The sender is dropped with its table alone, which is there for as long as this is.
            if let Ok(permit) = permit.await {
                return permit;
            }
        }
    }

    fn wait(&self, client: Client) -> oneshot::Receiver<FairPermit> {
        let (permit, receiver) = oneshot::channel();
        let mut table = self.table();
        table.count += 1;
        let number = table.count;
        table.waiting.insert(number, Waiting { client, permit });
        receiver
    }

    /// Gives away what is free.
    fn give(&self) {
        loop {
            let mut table = self.table();
            table.waiting.retain(|_, waiting| !waiting.permit.is_closed());
            let Some(number) = table.next(self.total) else { return };
            let Some(Waiting { client, permit }) = table.waiting.remove(&number) else { return };
            table.taken += 1;
            table.shares.add(client, 1);
            drop(table);
            // Who has gone meanwhile gives it back.
            drop(permit.send(FairPermit { semaphore: self.clone(), client }));
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// The client that gets the next permit.
    fn next(&self, total: usize) -> Option<u64> {
        let is_free = self.taken < total;
        let entitled =
            self.waiting.iter().filter(|(_, waiting)| is_free && self.may_have(waiting.client, total));
        let first = entitled.min_by_key(|(number, waiting)| (self.shares.share(waiting.client, 0), **number));
        first.map(|(number, _)| *number)
    }

    /// Whether a client may have another permit, if one is free.
    fn may_have(&self, client: Client, total: usize) -> bool {
        self.shares.of_address(client) < most(total, PART_OF_ADDRESS)
            && self.shares.of_network(client) < most(total, PART_OF_NETWORK)
    }

    /// Whether a client might have the permit that another has.
    fn might_have(&self, client: Client, total: usize, other: Client) -> bool {
        self.shares.of_address(client)
            < most(total, PART_OF_ADDRESS) + u64::from(client.address == other.address)
            && self.shares.of_network(client)
                < most(total, PART_OF_NETWORK) + u64::from(client.network == other.network)
    }
}

/// The most permits of an address or a network, which has one of so many.
fn most(total: usize, part: usize) -> u64 {
    u64::try_from((total / part).max(1)).unwrap_or(u64::MAX)
}

impl FairPermit {
    /// Whether a client waits for a permit, and would get this one.
    pub(crate) fn is_wanted(&self) -> bool {
        let table = self.semaphore.table();
        let wants = |waiting: &Waiting| {
            !waiting.permit.is_closed() && table.might_have(waiting.client, self.semaphore.total, self.client)
        };
        table.waiting.values().any(wants)
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        let mut table = self.semaphore.table();
        table.taken -= 1;
        table.shares.remove(self.client, 1);
        drop(table);
        self.semaphore.give();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn take(semaphore: &FairSemaphore, peer: &str) -> Option<FairPermit> {
        semaphore.take(peer.parse().unwrap()).now_or_never()
    }

    #[test]
    fn n13_an_address_has_an_eighth_and_a_network_half() {
        let semaphore = FairSemaphore::new(64);
        let greedy: Vec<_> = (0..100).filter_map(|_| take(&semaphore, "192.0.2.66")).collect();
        assert_eq!(greedy.len(), 8);
        let strangers: Vec<_> =
            (0..200).filter_map(|n| take(&semaphore, &format!("2001:db8:0:bad::{n:x}"))).collect();
        assert_eq!(strangers.len(), 32);
        let others: Vec<_> = (0..100).filter_map(|n| take(&semaphore, &format!("192.0.2.{n}"))).collect();
        assert_eq!(others.len(), 24);
        drop(greedy);
        assert!(take(&semaphore, "192.0.2.66").is_some(), "what is over is free");
    }

    #[tokio::test]
    async fn n13_a_permit_that_is_released_goes_to_who_has_the_fewest() {
        let semaphore = FairSemaphore::new(16);
        let wait = |peer: &str| {
            tokio::spawn({
                let (semaphore, peer) = (semaphore.clone(), peer.parse().unwrap());
                async move { semaphore.take(peer).await }
            })
        };
        let mut taken: Vec<_> = (0..16).filter_map(|n| take(&semaphore, &format!("192.0.2.{n}"))).collect();
        let greedy = take(&semaphore, "192.0.2.3");
        assert!(greedy.is_none());
        let (mut second, given_up, first) = (wait("192.0.2.3"), wait("192.0.2.77"), wait("192.0.2.99"));
        tokio::task::yield_now().await;
        assert!(taken[0].is_wanted());
        given_up.abort();
        assert!(given_up.await.is_err());
        drop(taken.swap_remove(0));
        let permit = first.await.unwrap();
        assert!((&mut second).now_or_never().is_none(), "it came before, and has one already");
        drop(permit);
        let permit = second.await.unwrap();
        assert!(!permit.is_wanted());
        drop((permit, taken));
        assert_eq!(semaphore.table().taken, 0);
    }
}
