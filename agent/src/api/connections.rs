//! The places at the listener.
//!
//! When all are taken, a newcomer gets the place of another connection: the oldest one without a
//! request under way, of the network that holds the most places. Who opens many connections drives
//! out nobody but himself.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// The open connections by their peers.
#[derive(Debug, Clone)]
pub struct Connections {
    table: Arc<Mutex<Table>>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Table {
    open: BTreeMap<SocketAddr, Entry>,
    /// Connections so far.
    count: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    requests: usize,
    /// Dropped to close the connection.
    _close: oneshot::Sender<()>,
}

/// The place of one connection; free again when dropped.
#[derive(Debug)]
pub struct Place {
    connections: Connections,
    peer: SocketAddr,
    number: u64,
    /// Ends when the place is given to somebody else.
    taken: oneshot::Receiver<()>,
}

/// A request under way; its connection keeps its place.
#[derive(Debug)]
pub struct Request {
    connections: Connections,
    peer: SocketAddr,
}

impl Connections {
    /// Places for so many connections.
    pub fn new(capacity: usize) -> Self {
        Self { table: Arc::default(), capacity }
    }

    /// A place for a new connection; nothing when every other one has a request under way.
    pub fn admit(&self, peer: SocketAddr) -> Option<Place> {
        let mut table = self.table();
        while table.open.len() >= self.capacity {
            let victim = table.victim()?;
            tracing::warn!(peer = %victim, "a connection is closed: too many are open");
            table.open.remove(&victim);
        }
        let (close, taken) = oneshot::channel();
        table.count += 1;
        let number = table.count;
        table.open.insert(peer, Entry { number, requests: 0, _close: close });
        Some(Place { connections: self.clone(), peer, number, taken })
    }

    /// Notes that a request of this peer is under way, for as long as the guard lives.
    pub fn request(&self, peer: SocketAddr) -> Request {
        if let Some(entry) = self.table().open.get_mut(&peer) {
            entry.requests += 1;
        }
        Request { connections: self.clone(), peer }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Table {
    fn victim(&self) -> Option<SocketAddr> {
        let mut shares = BTreeMap::<IpAddr, usize>::new();
        for peer in self.open.keys() {
            *shares.entry(network(peer.ip())).or_default() += 1;
        }
        let idle = self.open.iter().filter(|(_, entry)| entry.requests == 0);
        let rank = |peer: &SocketAddr, entry: &Entry| {
            (shares.get(&network(peer.ip())).copied(), u64::MAX - entry.number)
        };
        idle.max_by_key(|(peer, entry)| rank(peer, entry)).map(|(peer, _)| *peer)
    }
}

/// A host has one IPv4 address, and a whole /64 of IPv6 addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.connections.table();
        if table.open.get(&self.peer).is_some_and(|entry| entry.number == self.number) {
            table.open.remove(&self.peer);
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(entry) = self.connections.table().open.get_mut(&self.peer) {
            entry.requests = entry.requests.saturating_sub(1);
        }
    }
}

/// A stream that ends when its place is taken.
#[derive(Debug)]
pub struct Seated<S> {
    /// The stream.
    pub stream: S,
    /// Its place.
    pub place: Place,
}

impl<S: AsyncRead + Unpin> AsyncRead for Seated<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if Pin::new(&mut self.place.taken).poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Seated<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn is_taken(place: &mut Place) -> bool {
        place.taken.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn who_holds_the_most_places_gives_one_up() {
        let connections = Connections::new(3);
        let mut conductor = connections.admit(peer("192.0.2.1:1")).unwrap();
        let mut first = connections.admit(peer("[2001:db8::1]:1")).unwrap();
        let mut second = connections.admit(peer("[2001:db8::2]:1")).unwrap();
        let _newcomer = connections.admit(peer("192.0.2.3:1")).unwrap();
        assert!(is_taken(&mut first), "the oldest of the largest network");
        assert!(!is_taken(&mut second) && !is_taken(&mut conductor));
    }

    #[test]
    fn a_request_under_way_keeps_its_place() {
        let connections = Connections::new(2);
        let mut busy = connections.admit(peer("192.0.2.1:1")).unwrap();
        let mut idle = connections.admit(peer("192.0.2.1:2")).unwrap();
        let request = connections.request(peer("192.0.2.1:1"));
        let third = connections.admit(peer("192.0.2.1:3")).unwrap();
        assert!(is_taken(&mut idle) && !is_taken(&mut busy));
        let _other = connections.request(peer("192.0.2.1:3"));
        assert!(connections.admit(peer("192.0.2.1:4")).is_none());
        drop((request, third));
        assert!(connections.admit(peer("192.0.2.1:4")).is_some());
        assert!(!is_taken(&mut busy), "a free place is taken first");
    }
}
