//! Asking whether another machine has an IPv4 address already (RFC 5227).

use super::interface::has_carrier;
use crate::mac_address::MacAddress;
use farrier_linux::packet::{PacketSocket, wait_for_frame};
use std::net::Ipv4Addr;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

/// EtherType of ARP.
const PROTOCOL: u16 = 0x0806;
/// Ethernet and IPv4, with addresses of six and four bytes.
const KINDS: [u8; 6] = [0, 1, 8, 0, 6, 4];
/// Asks who has an address.
const QUESTION: [u8; 2] = [0, 1];
/// How often it is asked, and how long an answer may take each time.
const QUESTIONS: usize = 3;
const PATIENCE: Duration = Duration::from_millis(700);
/// How often to look whether there is a carrier yet.
const LOOK: Duration = Duration::from_millis(200);

/// Asks in a thread of its own, once the link has a carrier, and sends the address when another machine has it.
pub fn ask(interface: &str, mac: MacAddress, address: Ipv4Addr, conflicts: Sender<Ipv4Addr>) {
    let interface = interface.to_owned();
    thread::spawn(move || {
        while !has_carrier(&interface) {
            if nix::net::if_::if_nametoindex(interface.as_str()).is_err() {
                return;
            }
            thread::sleep(LOOK);
        }
        if is_taken(&interface, mac, address) {
            // Nobody to hear it means that PID 1 starts over.
            conflicts.send(address).ok();
        }
    });
}

fn is_taken(interface: &str, mac: MacAddress, address: Ipv4Addr) -> bool {
    let Ok(socket) = PacketSocket::open(interface, PROTOCOL, &[]) else { return false };
    for _ in 0..QUESTIONS {
        // A link that went down has no answer either.
        socket.send(&question(mac, address)).ok();
        let deadline = Instant::now() + PATIENCE;
        while wait_for_frame(std::iter::once(&socket), deadline) {
            let frame = socket.receive().ok().flatten().unwrap_or_default();
            if owner(&frame, address).is_some_and(|owner| owner != mac) {
                return true;
            }
        }
    }
    false
}

/// A question to everybody, from nobody: it must not change what others remember.
fn question(mac: MacAddress, address: Ipv4Addr) -> Vec<u8> {
    let ethernet = [&[0xff; 6][..], &mac.0, &PROTOCOL.to_be_bytes()].concat();
    [&ethernet[..], &KINDS, &QUESTION, &mac.0, &[0; 4], &[0; 6], &address.octets()].concat()
}

/// Who says that the address is its own.
fn owner(frame: &[u8], address: Ipv4Addr) -> Option<MacAddress> {
    let (_, message) = frame.split_at_checked(14)?;
    let is_claim = message.starts_with(&KINDS) && message.get(14..18)? == address.octets();
    let mac: [u8; 6] = message.get(8..14)?.try_into().ok()?;
    is_claim.then_some(MacAddress(mac))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddress = MacAddress([0x52, 0x54, 0, 0, 0, 1]);
    const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 5);

    #[test]
    fn whoever_says_to_have_the_address_is_its_owner() {
        let mut claim = question(MAC, ADDRESS);
        assert_eq!((claim.len(), owner(&claim, ADDRESS)), (42, None));
        claim[28..32].copy_from_slice(&ADDRESS.octets());
        assert_eq!(owner(&claim, ADDRESS), Some(MAC));
        assert_eq!(owner(&claim, Ipv4Addr::new(192, 0, 2, 6)), None);
        for length in 0..32 {
            assert_eq!(owner(&claim[..length], ADDRESS), None);
        }
    }
}
