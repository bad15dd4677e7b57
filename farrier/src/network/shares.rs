//! What clients hold of something that all of them share, such as connections or memory.

use crate::network::Client;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;

/// A /64 network counts as so many addresses: one host may have all of it, and so may all machines of a provisioning
/// network.
pub(crate) const HOSTS_OF_A_NETWORK: u64 = 16;

/// What clients hold.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    addresses: HashMap<IpAddr, u64>,
    networks: HashMap<IpAddr, u64>,
}

/// How much a client has; who has more gives up something first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Share {
    weight: u64,
    of_network: u64,
}

impl Shares {
    /// A client has so much more.
    pub(crate) fn add(&mut self, client: Client, amount: u64) {
        *self.addresses.entry(client.address).or_default() += amount;
        *self.networks.entry(client.network).or_default() += amount;
    }

    /// A client has so much less.
    pub(crate) fn remove(&mut self, client: Client, amount: u64) {
        less(&mut self.addresses, client.address, amount);
        less(&mut self.networks, client.network, amount);
    }

    /// What the address of a client holds.
    pub(crate) fn of_address(&self, client: Client) -> u64 {
        self.addresses.get(&client.address).copied().unwrap_or_default()
    }

    /// What the network of a client holds.
    pub(crate) fn of_network(&self, client: Client) -> u64 {
        self.networks.get(&client.network).copied().unwrap_or_default()
    }

    /// The share of a client that had so much more.
    pub(crate) fn share(&self, client: Client, more: u64) -> Share {
        let of_network = self.of_network(client) + more;
        let of_address = self.of_address(client) + more;
        Share { weight: (of_address * HOSTS_OF_A_NETWORK).max(of_network), of_network }
    }
}

fn less<K: Hash + Eq>(held: &mut HashMap<K, u64>, key: K, amount: u64) {
    if let Some(holds) = held.get_mut(&key) {
        *holds = holds.saturating_sub(amount);
        if *holds == 0 {
            held.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: &str) -> Client {
        Client::of(address.parse().unwrap())
    }

    #[test]
    fn n13_an_address_weighs_more_than_the_machines_of_a_network_and_less_than_a_stranger_who_has_all_of_one()
    {
        let mut shares = Shares::default();
        // The machines of a provisioning network, with an address each.
        for machine in 0..400 {
            shares.add(client(&format!("2001:db8::{machine:x}")), 1);
        }
        let (greedy, modest) = (client("192.0.2.66"), client("192.0.2.1"));
        shares.add(greedy, 100);
        shares.add(modest, 4);
        let machine = client("2001:db8::1");
        assert!(shares.share(greedy, 0) > shares.share(machine, 0));
        assert!(shares.share(machine, 0) > shares.share(modest, 0));
        // As many addresses as a stranger with a whole network likes.
        for stranger in 0..500 {
            shares.add(client(&format!("2001:db8:0:bad::{stranger:x}")), 1);
        }
        assert!(shares.share(client("2001:db8:0:bad::1"), 0) > shares.share(machine, 0));
        shares.remove(greedy, 100);
        assert_eq!((shares.of_address(greedy), shares.of_network(greedy)), (0, 0));
        assert_eq!(shares.share(greedy, 1), shares.share(client("::ffff:192.0.2.67"), 1));
    }
}
