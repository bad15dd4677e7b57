//! The places at the listener, and the memory of the requests.
//!
//! When all places are taken, a newcomer gets the place of another connection: the oldest one without a whole
//! request under way, of the network that holds the most places. Who opens many connections drives out nobody
//! but himself.
//!
//! The handshakes of a network take turns, because each takes the processor's time: those of a crowd do not make
//! everybody else wait.
//!
//! When the memory does not suffice, the largest unfinished body gives way. Whoever begins many requests and
//! ends none keeps out nobody who sends whole ones.

use crate::commands::allowance::{Allowance, Claim};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, oneshot};

/// Least time between two lines about closed connections.
const SILENCE: Duration = Duration::from_secs(10);

/// Handshakes of a network at a time.
const HANDSHAKES: usize = 2;

/// The open connections by their peers.
#[derive(Debug, Clone)]
pub struct Connections {
    table: Arc<Mutex<Table>>,
    capacity: usize,
    allowance: Arc<Allowance>,
}

#[derive(Debug, Default)]
struct Table {
    open: BTreeMap<SocketAddr, Entry>,
    /// Connections so far.
    count: u64,
    /// Connections closed since the last line about them.
    closed: u64,
    told: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    request: Request,
    handshakes: Arc<Semaphore>,
    /// Dropped to close the connection.
    _close: oneshot::Sender<()>,
}

/// What a connection is at.
#[derive(Debug, Default)]
struct Request {
    /// It was received to its end, and is being answered.
    is_whole: bool,
    /// The memory it takes.
    claim: Option<Claim>,
}

/// The place of one connection; free again when dropped.
#[derive(Debug)]
pub struct Place {
    seat: Seat,
    /// For handshakes of the same network.
    pub handshakes: Arc<Semaphore>,
    /// Ends when another client gets the place.
    pub taken: oneshot::Receiver<()>,
}

/// Which place it is, for the requests that come in there.
#[derive(Debug, Clone)]
pub struct Seat {
    connections: Connections,
    peer: SocketAddr,
    number: u64,
}

/// A request of a client who has shown the token; it is over when this is dropped.
#[derive(Debug)]
pub struct Reception(Seat);

impl Connections {
    /// Places for so many connections, and memory for their requests.
    pub fn new(capacity: usize, allowance: Arc<Allowance>) -> Self {
        Self { table: Arc::default(), capacity, allowance }
    }

    /// A place for a new connection; nothing when every other one has a whole request under way.
    pub fn admit(&self, peer: SocketAddr) -> Option<Place> {
        let mut table = self.table();
        while table.open.len() >= self.capacity {
            let victim = table.most_idle()?;
            table.close(victim);
        }
        let (close, taken) = oneshot::channel();
        table.count += 1;
        let number = table.count;
        let handshakes = table.handshakes_of(network(peer.ip()));
        let entry =
            Entry { number, request: Request::default(), handshakes: Arc::clone(&handshakes), _close: close };
        table.open.insert(peer, entry);
        Some(Place { seat: Seat { connections: self.clone(), peer, number }, handshakes, taken })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Table {
    fn most_idle(&self) -> Option<SocketAddr> {
        let mut shares = BTreeMap::<IpAddr, usize>::new();
        for peer in self.open.keys() {
            *shares.entry(network(peer.ip())).or_default() += 1;
        }
        let rank = |peer: &SocketAddr, entry: &Entry| {
            (shares.get(&network(peer.ip())).copied(), u64::MAX - entry.number)
        };
        self.unfinished().max_by_key(|(peer, entry)| rank(peer, entry)).map(|(peer, _)| *peer)
    }

    /// The largest one, where it has more than so many bytes.
    fn unfinished_above(&self, bytes: usize) -> Option<SocketAddr> {
        let (peer, entry) = self.unfinished().max_by_key(|(_, entry)| entry.request.bytes())?;
        (entry.request.bytes() > bytes).then_some(*peer)
    }

    fn unfinished(&self) -> impl Iterator<Item = (&SocketAddr, &Entry)> {
        self.open.iter().filter(|(_, entry)| !entry.request.is_whole)
    }

    /// The turns of a network, which are known as long as it has a connection.
    fn handshakes_of(&self, own: IpAddr) -> Arc<Semaphore> {
        let neighbour = self.open.iter().find(|(peer, _)| network(peer.ip()) == own);
        let known = neighbour.map(|(_, entry)| Arc::clone(&entry.handshakes));
        known.unwrap_or_else(|| Arc::new(Semaphore::new(HANDSHAKES)))
    }

    /// Closes a connection. A crowd does not fill the log.
    fn close(&mut self, peer: SocketAddr) {
        self.open.remove(&peer);
        self.closed += 1;
        if self.told.is_none_or(|told| told.elapsed() >= SILENCE) {
            tracing::warn!(%peer, closed = self.closed, "connections are closed to make room for others");
            (self.told, self.closed) = (Some(Instant::now()), 0);
        }
    }
}

impl Request {
    fn bytes(&self) -> usize {
        self.claim.as_ref().map_or(0, Claim::bytes)
    }
}

/// A host has one IPv4 address, and a whole /64 of IPv6 addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

impl Place {
    /// Which one it is.
    pub fn seat(&self) -> Seat {
        self.seat.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.seat.connections.table();
        if table.open.get(&self.seat.peer).is_some_and(|entry| entry.number == self.seat.number) {
            table.open.remove(&self.seat.peer);
        }
    }
}

impl Seat {
    /// Begins a request.
    pub fn receive(&self) -> Reception {
        Reception(self.clone())
    }

    /// The request on its connection; nothing when that is gone.
    fn request<'a>(&self, table: &'a mut Table) -> Option<&'a mut Request> {
        let own = table.open.get_mut(&self.peer).filter(|entry| entry.number == self.number);
        own.map(|entry| &mut entry.request)
    }
}

impl Reception {
    /// Bytes of all requests together at most.
    pub fn capacity(&self) -> usize {
        self.0.connections.allowance.capacity()
    }

    /// The request was received to its end: its connection keeps its place and its memory.
    pub fn complete(&self) {
        if let Some(request) = self.0.request(&mut self.0.connections.table()) {
            request.is_whole = true;
        }
    }

    /// Reserves this many bytes of memory instead of the previous reservation; false when the machine has not so much
    /// for it, or the connection is gone.
    #[must_use]
    pub fn take(&self, memory: usize) -> bool {
        let mut table = self.0.connections.table();
        loop {
            let Some(request) = self.0.request(&mut table) else { return false };
            let claim = request.claim.get_or_insert_with(|| self.0.connections.allowance.claim());
            if claim.resize(memory) {
                return true;
            }
            match table.unfinished_above(memory) {
                Some(other) => table.close(other),
                None => break,
            }
        }
        if let Some(request) = self.0.request(&mut table) {
            request.claim = None;
        }
        false
    }

    /// Hands over the memory to the command that has been received, which may outlive the request.
    pub fn hand_over(&self) -> Option<Claim> {
        self.0.request(&mut self.0.connections.table())?.claim.take()
    }
}

impl Drop for Reception {
    fn drop(&mut self) {
        if let Some(request) = self.0.request(&mut self.0.connections.table()) {
            *request = Request::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(connections: &Connections, peer: &str) -> Option<Place> {
        connections.admit(peer.parse().unwrap())
    }

    fn is_taken(place: &mut Place) -> bool {
        place.taken.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn who_holds_the_most_places_gives_one_up() {
        let connections = Connections::new(3, Allowance::of(0));
        let mut conductor = admit(&connections, "192.0.2.1:1").unwrap();
        let mut first = admit(&connections, "[2001:db8::1]:1").unwrap();
        let mut second = admit(&connections, "[2001:db8::2]:1").unwrap();
        let _newcomer = admit(&connections, "192.0.2.3:1").unwrap();
        assert!(is_taken(&mut first), "the oldest of the largest network");
        assert!(!is_taken(&mut second) && !is_taken(&mut conductor));
    }

    #[test]
    fn x41_handshakes_of_a_network_take_turns_and_no_other_waits() {
        let connections = Connections::new(9, Allowance::of(0));
        let crowd: Vec<_> =
            (1..=3).map(|port| admit(&connections, &format!("192.0.2.3:{port}")).unwrap()).collect();
        let turns: Vec<_> = crowd[..2].iter().map(|place| place.handshakes.try_acquire().unwrap()).collect();
        assert!(crowd[2].handshakes.try_acquire().is_err());
        let conductor = admit(&connections, "192.0.2.1:1").unwrap();
        assert!(conductor.handshakes.try_acquire().is_ok());
        drop(turns);
        assert!(crowd[2].handshakes.try_acquire().is_ok());
    }

    #[test]
    fn x44_a_whole_request_keeps_its_place_and_an_unfinished_one_does_not() {
        let connections = Connections::new(2, Allowance::of(0));
        let mut busy = admit(&connections, "192.0.2.1:1").unwrap();
        let mut reading = admit(&connections, "192.0.2.1:2").unwrap();
        let (whole, unfinished) = (busy.seat().receive(), reading.seat().receive());
        whole.complete();
        let third = admit(&connections, "192.0.2.1:3").unwrap();
        assert!(is_taken(&mut reading) && !is_taken(&mut busy));
        let other = third.seat().receive();
        other.complete();
        // What is left of a request whose connection is gone ends nobody else's.
        unfinished.complete();
        drop(unfinished);
        assert!(admit(&connections, "192.0.2.1:4").is_none());
        drop((whole, third));
        assert!(admit(&connections, "192.0.2.1:4").is_some());
        assert!(!is_taken(&mut busy), "a free place is taken first");
    }

    #[test]
    fn x44_the_largest_unfinished_body_gives_way_to_what_is_smaller() {
        let connections = Connections::new(4, Allowance::of(100));
        let mut places: Vec<_> =
            (1..=4).map(|port| admit(&connections, &format!("192.0.2.1:{port}")).unwrap()).collect();
        let requests: Vec<_> = places.iter().map(|place| place.seat().receive()).collect();
        assert!(requests[0].take(30) && requests[1].take(60));
        assert!(!requests[2].take(70), "the largest is refused itself");
        assert!(requests[2].take(20), "and another takes its place");
        assert!(is_taken(&mut places[1]) && !is_taken(&mut places[0]));
        requests[0].complete();
        assert!(requests[2].take(70));
        requests[2].complete();
        assert!(!requests[3].take(1), "whole requests keep what they have");
        drop(requests);
        assert!(places[3].seat().receive().take(100));
    }
}
