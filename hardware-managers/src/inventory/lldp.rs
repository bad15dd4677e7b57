//! What switches say about the ports this machine is plugged into (section 10.4).

use crate::intel_cna;
use farrier_linux::packet::{PacketSocket, wait_for_frame};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Ethernet protocol of LLDP.
const PROTOCOL: u16 = 0x88cc;
/// Addresses LLDP frames are sent to: nearest bridge, nearest non-TPMR bridge, nearest customer
/// bridge.
const GROUPS: [[u8; 6]; 3] =
    [[0x01, 0x80, 0xc2, 0, 0, 0x0e], [0x01, 0x80, 0xc2, 0, 0, 0x03], [0x01, 0x80, 0xc2, 0, 0, 0x00]];
/// Bytes before the first TLV: two addresses and the protocol.
const ETHERNET_HEADER: usize = 14;
/// Most interfaces that are listened to (S49).
const MAX_INTERFACES: usize = 64;
/// Most TLVs of one frame that are kept (S49).
const MAX_TLVS: usize = 256;
/// Type of the TLV that ends a frame.
const END: u8 = 0;

/// A TLV on the wire: its type, and its value in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tlv(pub u8, pub String);

/// Listens on the given interfaces until each has heard a frame, or none came for `patience`.
/// Silent interfaces have an empty list; one that cannot be opened is left out (F42).
pub fn listen(interfaces: &[String], patience: Duration) -> BTreeMap<String, Vec<Tlv>> {
    intel_cna::release_lldp(Path::new("/"));
    let mut heard = BTreeMap::new();
    let mut waiting = Vec::new();
    for name in interfaces.iter().take(MAX_INTERFACES) {
        match PacketSocket::open(name, PROTOCOL, &GROUPS) {
            Ok(socket) => {
                heard.insert(name.clone(), Vec::new());
                waiting.push((name.clone(), socket));
            }
            Err(error) => tracing::warn!(interface = name, %error, "cannot listen for LLDP frames"),
        }
    }
    let mut deadline = Instant::now() + patience;
    while wait_for_frame(waiting.iter().map(|(_, socket)| socket), deadline) {
        waiting.retain(|(name, socket)| match socket.receive() {
            Ok(None) => true,
            // It may be that the link is not up yet.
            Err(error) if error.kind() == std::io::ErrorKind::NetworkDown => true,
            Ok(Some(frame)) => {
                heard.insert(name.clone(), parse(name, &frame));
                deadline = Instant::now() + patience;
                false
            }
            Err(error) => {
                tracing::warn!(interface = name, %error, "no more listening for LLDP frames");
                false
            }
        });
    }
    heard
}

/// The TLVs of a frame: seven bits of type, nine of length, and the value, 511 octets at most.
/// What is cut short is dropped, the rest is kept (S49).
pub fn parse(interface: &str, frame: &[u8]) -> Vec<Tlv> {
    let mut rest = frame.get(ETHERNET_HEADER..).unwrap_or_default();
    let mut tlvs = Vec::new();
    while let Some((header, after)) = rest.split_first_chunk::<2>() {
        let header = u16::from_be_bytes(*header);
        let (kind, length) = ((header >> 9) as u8, usize::from(header & 0x1ff));
        let Some((value, after)) = after.split_at_checked(length) else {
            tracing::warn!(interface, kind, length, "an LLDP value that is cut short is dropped");
            break;
        };
        tlvs.push(Tlv(kind, value.iter().map(|byte| format!("{byte:02x}")).collect()));
        if kind == END || tlvs.len() == MAX_TLVS {
            break;
        }
        rest = after;
    }
    tlvs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(tlvs: &[u8]) -> Vec<u8> {
        [&[0; ETHERNET_HEADER], tlvs].concat()
    }

    #[test]
    fn tlvs_are_read_up_to_and_with_the_end() {
        let bytes = [
            &[0x02, 0x07, 0x04, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff][..],
            &[0x04, 0x05, 0x05, 0x45, 0x74, 0x68, 0x31],
            &[0x06, 0x02, 0x00, 0x78],
            &[0x00, 0x00],
            &[0x00; 20],
        ]
        .concat();
        let expected = [(1, "04aabbccddeeff"), (2, "0545746831"), (3, "0078"), (0, "")];
        assert_eq!(parse("eth0", &frame(&bytes)), expected.map(|(kind, text)| Tlv(kind, text.into())));
    }

    #[test]
    fn s49_what_is_cut_short_is_dropped_and_the_rest_kept() {
        let cut = [0x06, 0x02, 0x00, 0x78, 0x09, 0xff, 1, 2, 3];
        assert_eq!(parse("eth0", &frame(&cut)), [Tlv(3, "0078".into())]);
        assert_eq!(parse("eth0", &[0; 5]), []);
        let endless = [0x02, 0x00].repeat(4000);
        assert_eq!(parse("eth0", &frame(&endless)).len(), MAX_TLVS);
    }

    #[test]
    fn f42_an_interface_that_cannot_be_opened_is_left_out() {
        let names = ["nosuch0".to_owned()];
        assert_eq!(listen(&names, Duration::from_secs(60)), BTreeMap::new());
    }

    proptest! {
        #[test]
        fn s49_no_frame_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..9216)) {
            for Tlv(kind, value) in parse("eth0", &bytes) {
                prop_assert!(kind < 128 && value.len() <= 2 * 511);
            }
        }
    }
}
