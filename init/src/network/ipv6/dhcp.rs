//! Messages of DHCP over IPv6 (RFC 8415), as far as a client needs them.

use farrier_linux::netlink::Lifetime;
use std::net::Ipv6Addr;

/// Codes of options.
const CLIENT: u16 = 1;
const SERVER: u16 = 2;
const ADDRESSES: u16 = 3;
const ADDRESS: u16 = 5;
const WANTED: u16 = 6;
const ELAPSED: u16 = 8;
const STATUS: u16 = 13;
const NAME_SERVERS: u16 = 23;
/// Bytes before the options: of a message, of a set of addresses, of an address.
const MESSAGE_HEADER: usize = 4;
const ADDRESSES_HEADER: usize = 12;
const ADDRESS_HEADER: usize = 24;

/// Kinds of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Who gives addresses?
    Solicit = 1,
    /// A server does.
    Advertise = 2,
    /// A client takes what it was offered.
    Request = 3,
    /// A client wants to keep it.
    Renew = 5,
    /// The server agrees.
    Reply = 7,
    /// A client wants to know all but an address.
    InformationRequest = 11,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// The client's identifier, made of its hardware address (11.4).
    identifier: Vec<u8>,
    /// Which of its sets of addresses is meant; each interface has one.
    set: [u8; 4],
}

/// What a server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Who said it.
    pub server: Vec<u8>,
    /// The address to use.
    pub address: Option<(Ipv6Addr, Lifetime)>,
    /// Seconds after which to ask again for the address; 0 leaves that to the client.
    pub renew_after: u32,
    /// Who answers questions for names.
    pub name_servers: Vec<Ipv6Addr>,
}

impl Client {
    /// The client with this hardware address.
    pub fn new(mac: [u8; 6]) -> Self {
        // Type 3: a hardware address of type 1, Ethernet.
        let identifier = [&[0, 3, 0, 1][..], &mac].concat();
        Self { identifier, set: [mac[2], mac[3], mac[4], mac[5]] }
    }

    /// A message of the client. With an answer, it is for the server that gave it, about its address.
    pub fn message(&self, kind: Kind, transaction: [u8; 3], elapsed: u16, about: Option<&Answer>) -> Vec<u8> {
        let mut message = vec![kind as u8];
        message.extend(transaction);
        add(&mut message, CLIENT, &self.identifier);
        add(&mut message, ELAPSED, &elapsed.to_be_bytes());
        add(&mut message, WANTED, &NAME_SERVERS.to_be_bytes());
        if let Some(answer) = about {
            add(&mut message, SERVER, &answer.server);
        }
        if kind != Kind::InformationRequest {
            // The times are the server's to choose.
            let mut set = [&self.set[..], &[0; 8]].concat();
            if let Some((address, _)) = about.and_then(|answer| answer.address) {
                add(&mut set, ADDRESS, &[&address.octets()[..], &[0; 8]].concat());
            }
            add(&mut message, ADDRESSES, &set);
        }
        message
    }

    /// Reads what a server says to this client in a transaction; nothing when it is something else, or
    /// a refusal.
    pub fn answer(&self, bytes: &[u8], kind: Kind, transaction: [u8; 3]) -> Option<Answer> {
        let (header, rest) = bytes.split_at_checked(MESSAGE_HEADER)?;
        if header[0] != kind as u8 || header[1..] != transaction {
            return None;
        }
        let options = options(rest)?;
        let one = |code: u16| options.iter().find(|(found, _)| *found == code).map(|(_, value)| *value);
        if one(CLIENT)? != self.identifier || is_refusal(&options) {
            return None;
        }
        let (servers, _) = one(NAME_SERVERS).unwrap_or_default().as_chunks::<16>();
        let mut answer = Answer {
            server: one(SERVER)?.to_vec(),
            address: None,
            renew_after: 0,
            name_servers: servers.iter().copied().map(Ipv6Addr::from).collect(),
        };
        if let Some((set, rest)) = one(ADDRESSES).and_then(|set| set.split_at_checked(ADDRESSES_HEADER)) {
            answer.renew_after = number(set, 4)?;
            answer.address = if set[..4] == self.set { first_address(rest) } else { None };
        }
        Some(answer)
    }
}

/// The first usable address of a set; nothing when there is none, or the set is a refusal.
fn first_address(set: &[u8]) -> Option<(Ipv6Addr, Lifetime)> {
    let options = options(set).filter(|options| !is_refusal(options))?;
    options.iter().filter(|(code, _)| *code == ADDRESS).find_map(|(_, value)| usable_address(value))
}

fn usable_address(value: &[u8]) -> Option<(Ipv6Addr, Lifetime)> {
    let (header, rest) = value.split_at_checked(ADDRESS_HEADER)?;
    let octets: [u8; 16] = header.get(..16)?.try_into().ok()?;
    let address = Ipv6Addr::from(octets);
    let lifetime = Lifetime { preferred: number(header, 16)?, valid: number(header, 20)? };
    let is_sound = lifetime.valid > 0 && lifetime.preferred <= lifetime.valid;
    let is_of_a_machine = !address.is_unspecified() && !address.is_loopback() && !address.is_multicast();
    (is_sound && is_of_a_machine && !is_refusal(&options(rest)?)).then_some((address, lifetime))
}

/// Whether there is a status other than success.
fn is_refusal(options: &[(u16, &[u8])]) -> bool {
    options.iter().any(|(code, value)| *code == STATUS && value.get(..2) != Some(&[0, 0]))
}

fn number(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

/// Codes and values; nothing when the last one is cut short.
fn options(mut bytes: &[u8]) -> Option<Vec<(u16, &[u8])>> {
    let mut options = Vec::new();
    while !bytes.is_empty() {
        let (header, rest) = bytes.split_first_chunk::<4>()?;
        let code = u16::from_be_bytes([header[0], header[1]]);
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let (value, rest) = rest.split_at_checked(length)?;
        options.push((code, value));
        bytes = rest;
    }
    Some(options)
}

fn add(message: &mut Vec<u8>, code: u16, value: &[u8]) {
    message.extend(code.to_be_bytes());
    message.extend((value.len() as u16).to_be_bytes());
    message.extend(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TRANSACTION: [u8; 3] = [1, 2, 3];

    fn client() -> Client {
        Client::new([0x52, 0x54, 0, 0, 0, 1])
    }

    /// An answer of a server, with options of the message and of the set of addresses.
    fn answer(kind: Kind, further: &[u8], set: &[u8]) -> Vec<u8> {
        let mut message = vec![kind as u8, 1, 2, 3];
        add(&mut message, CLIENT, &client().identifier);
        add(&mut message, SERVER, &[0, 3, 0, 1, 9, 9, 9, 9, 9, 9]);
        message.extend(further);
        if !set.is_empty() {
            add(&mut message, ADDRESSES, &[&client().set[..], &[0, 0, 0, 50, 0, 0, 0, 80], set].concat());
        }
        message
    }

    fn option(code: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        add(&mut bytes, code, value);
        bytes
    }

    fn address(preferred: u32, valid: u32) -> Vec<u8> {
        let address: Ipv6Addr = "2001:db8::77".parse().unwrap();
        option(ADDRESS, &[&address.octets()[..], &preferred.to_be_bytes(), &valid.to_be_bytes()].concat())
    }

    #[test]
    fn an_address_and_name_servers_are_read() {
        let server: Ipv6Addr = "2001:db8::53".parse().unwrap();
        let bytes = answer(Kind::Reply, &option(NAME_SERVERS, &server.octets()), &address(100, 200));
        let found = client().answer(&bytes, Kind::Reply, TRANSACTION).unwrap();
        let lifetime = Lifetime { preferred: 100, valid: 200 };
        assert_eq!(found.address, Some(("2001:db8::77".parse().unwrap(), lifetime)));
        assert_eq!((found.renew_after, found.name_servers), (50, vec![server]));
    }

    #[test]
    fn what_is_for_others_or_a_refusal_is_no_answer() {
        let refusal = option(STATUS, &[0, 2, b'n', b'o']);
        assert_eq!(client().answer(&answer(Kind::Reply, &[], &[]), Kind::Advertise, TRANSACTION), None);
        assert_eq!(client().answer(&answer(Kind::Reply, &[], &[]), Kind::Reply, [3, 2, 1]), None);
        assert_eq!(client().answer(&answer(Kind::Reply, &refusal, &[]), Kind::Reply, TRANSACTION), None);
        let other = Client::new([2; 6]);
        assert_eq!(other.answer(&answer(Kind::Reply, &[], &[]), Kind::Reply, TRANSACTION), None);
        for set in [refusal.clone(), address(100, 0), address(300, 200), [refusal, address(1, 2)].concat()] {
            let found = client().answer(&answer(Kind::Reply, &[], &set), Kind::Reply, TRANSACTION).unwrap();
            assert_eq!(found.address, None, "{set:?}");
        }
    }

    #[test]
    fn a04_an_address_that_is_none_costs_neither_the_next_one_nor_the_name_servers() {
        let server: Ipv6Addr = "2001:db8::53".parse().unwrap();
        let named = option(NAME_SERVERS, &[&server.octets()[..], &[1, 2, 3]].concat());
        let of = |address: &str| {
            let address: Ipv6Addr = address.parse().unwrap();
            option(ADDRESS, &[&address.octets()[..], &[0, 0, 0, 100, 0, 0, 0, 200]].concat())
        };
        let short = option(ADDRESS, &[1, 2, 3]);
        let cut = [address(100, 200), vec![0, 5, 0, 24, 1]].concat();
        let faults = [of("::"), of("::1"), of("ff02::1"), short, address(300, 200), address(0, 0)];
        for fault in &faults {
            let set = [fault.clone(), address(100, 200)].concat();
            let found =
                client().answer(&answer(Kind::Reply, &named, &set), Kind::Reply, TRANSACTION).unwrap();
            assert_eq!(found.address.unwrap().0, "2001:db8::77".parse::<Ipv6Addr>().unwrap(), "{fault:?}");
        }
        for set in faults.iter().chain([&cut]) {
            let found = client().answer(&answer(Kind::Reply, &named, set), Kind::Reply, TRANSACTION).unwrap();
            assert_eq!((found.address, found.name_servers), (None, vec![server]), "{set:?}");
        }
    }

    #[test]
    fn a_request_names_server_and_address() {
        let bytes = answer(Kind::Advertise, &[], &address(100, 200));
        let offer = client().answer(&bytes, Kind::Advertise, TRANSACTION).unwrap();
        let message = client().message(Kind::Request, TRANSACTION, 7, Some(&offer));
        assert_eq!(message[..4], [3, 1, 2, 3]);
        let found = options(&message[4..]).unwrap();
        let codes: Vec<_> = found.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes, [CLIENT, ELAPSED, WANTED, SERVER, ADDRESSES]);
        let (_, set) = found[4];
        assert_eq!(options(&set[12..]).unwrap()[0].1[..16], offer.address.unwrap().0.octets());
        let message = client().message(Kind::InformationRequest, TRANSACTION, 7, None);
        assert!(options(&message[4..]).unwrap().iter().all(|(code, _)| *code != ADDRESSES));
    }

    proptest! {
        #[test]
        fn no_answer_is_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            client().answer(&bytes, Kind::Reply, TRANSACTION);
            client().answer(&answer(Kind::Reply, &bytes, &[]), Kind::Reply, TRANSACTION);
            client().answer(&answer(Kind::Reply, &[], &bytes), Kind::Reply, TRANSACTION);
        }
    }
}
