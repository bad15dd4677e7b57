//! A switch between the network cards of a machine and QEMU's user network, for what that network
//! cannot do: VLANs, several cards, announcements, and silence where a DHCP server would be.
//!
//! QEMU sends frames as datagrams; nothing here needs rights.

use crate::router;
use anyhow::{Context, Result};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Bytes of the two hardware addresses in front of a frame.
const ADDRESSES: usize = 12;
/// Largest frame.
const MAX_FRAME: usize = 65_550;
/// EtherType of a VLAN tag.
const TAG: [u8; 2] = [0x81, 0x00];
/// How often the switch announces itself.
const ANNOUNCEMENT: Duration = Duration::from_millis(500);

/// How the switch treats frames.
#[derive(Debug, Clone, Copy, Default)]
pub struct Behaviour {
    /// The only VLAN; frames without its tag are dropped. Without one, frames have no tag.
    pub vlan: Option<u16>,
    /// Whether what DHCP servers and routers say of themselves is dropped.
    pub is_silent: bool,
    /// How many messages of DHCP clients are lost before servers hear one.
    pub lost_requests: usize,
    /// Whether LLDP announces the VLAN.
    pub announces: bool,
    /// Whether the switch is a router with a DHCP server for IPv6 ([`crate::router`]).
    pub routes: bool,
}

/// The switch; it works until the process ends.
#[derive(Debug)]
pub struct Switch {
    folder: PathBuf,
    macs: Vec<String>,
    requests: Arc<AtomicUsize>,
}

impl Switch {
    /// Starts a switch with a port for each hardware address, and its sockets in `folder`.
    ///
    /// # Errors
    ///
    /// The sockets cannot be made.
    pub fn start(folder: &Path, macs: &[&str], behaviour: Behaviour) -> Result<Self> {
        let requests = Arc::new(AtomicUsize::new(0));
        let switch = Self {
            folder: folder.to_owned(),
            macs: macs.iter().map(|mac| (*mac).to_owned()).collect(),
            requests: Arc::clone(&requests),
        };
        let uplink = Arc::new(switch.socket("uplink")?);
        let names: Vec<String> = (0..macs.len()).map(port).collect();
        let ports =
            names.iter().map(|name| Ok(Arc::new(switch.socket(name)?))).collect::<Result<Vec<_>>>()?;
        let ends: Vec<_> = names.iter().map(|name| switch.far_end(name)).zip(ports.clone()).collect();
        for socket in ports {
            let (uplink, ends) = (Arc::clone(&uplink), ends.clone());
            let (requests, far) = (Arc::clone(&requests), switch.far_end("uplink"));
            thread::spawn(move || {
                forward(&socket, |frame| {
                    let Some(frame) = untagged(frame, behaviour.vlan) else { return };
                    if is_dhcp(&frame) && requests.fetch_add(1, Ordering::Relaxed) < behaviour.lost_requests {
                        return;
                    }
                    if let Some(answer) = router::answer(&frame).filter(|_| behaviour.routes) {
                        return send_to_all(&tagged(&answer, behaviour.vlan), &ends);
                    }
                    // QEMU may have ended.
                    uplink.send_to(&frame, &far).ok();
                });
            });
        }
        if behaviour.announces {
            let ends = ends.clone();
            thread::spawn(move || {
                loop {
                    send_to_all(&announcement(behaviour.vlan.unwrap_or(1)), &ends);
                    thread::sleep(ANNOUNCEMENT);
                }
            });
        }
        thread::spawn(move || {
            forward(&uplink, |frame| {
                if !(behaviour.is_silent && (is_dhcp(frame) || is_router_advertisement(frame))) {
                    send_to_all(&tagged(frame, behaviour.vlan), &ends);
                }
            });
        });
        Ok(switch)
    }

    /// QEMU's arguments for a card on each port, and for a user network with these options behind the
    /// switch.
    pub fn arguments(&self, user_network: &str) -> Vec<String> {
        let mut arguments = vec![
            ["-netdev".to_owned(), format!("user,id=user,{user_network}")],
            ["-netdev".to_owned(), "hubport,id=behind,hubid=0,netdev=user".to_owned()],
            ["-netdev".to_owned(), self.link("uplink")],
            ["-netdev".to_owned(), "hubport,id=before,hubid=0,netdev=uplink".to_owned()],
        ];
        for (number, mac) in self.macs.iter().enumerate() {
            arguments.push(["-netdev".to_owned(), self.link(&port(number))]);
            // Without an option ROM the firmware does not try to boot from the network. A bond with LACP takes
            // no port whose speed it does not know.
            let speed = "speed=1000,duplex=full";
            let card = format!("virtio-net-pci,netdev={},romfile=,{speed},mac={mac}", port(number));
            arguments.push(["-device".to_owned(), card]);
        }
        arguments.into_iter().flatten().collect()
    }

    /// How many DHCP messages the machine sent, of IPv4 and IPv6.
    pub fn dhcp_requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    fn socket(&self, name: &str) -> Result<UnixDatagram> {
        let path = self.folder.join(name);
        UnixDatagram::bind(&path).with_context(|| format!("cannot make the socket {}", path.display()))
    }

    /// The socket of QEMU that talks to the one of that name.
    fn far_end(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}-qemu"))
    }

    fn link(&self, name: &str) -> String {
        let (near, far) = (self.folder.join(name), self.far_end(name));
        format!(
            "dgram,id={name},local.type=unix,local.path={},remote.type=unix,remote.path={}",
            far.display(),
            near.display()
        )
    }
}

fn port(number: usize) -> String {
    format!("port{number}")
}

fn forward(socket: &UnixDatagram, mut take: impl FnMut(&[u8])) {
    let mut buffer = vec![0; MAX_FRAME];
    while let Ok(length) = socket.recv(&mut buffer) {
        take(&buffer[..length]);
    }
}

fn send_to_all(frame: &[u8], ends: &[(PathBuf, Arc<UnixDatagram>)]) {
    for (end, socket) in ends {
        // QEMU may not have started, or have ended.
        socket.send_to(frame, end).ok();
    }
}

/// The frame without the tag of the VLAN; nothing when it does not belong there.
fn untagged(frame: &[u8], vlan: Option<u16>) -> Option<Vec<u8>> {
    let Some(number) = vlan else { return Some(frame.to_vec()) };
    let (addresses, rest) = frame.split_at_checked(ADDRESSES)?;
    let rest = rest.strip_prefix(&TAG)?;
    let (tag, rest) = rest.split_first_chunk::<2>()?;
    (u16::from_be_bytes(*tag) & 0xfff == number).then(|| [addresses, rest].concat())
}

fn tagged(frame: &[u8], vlan: Option<u16>) -> Vec<u8> {
    match (vlan, frame.split_at_checked(ADDRESSES)) {
        (Some(number), Some((addresses, rest))) => [addresses, &TAG, &number.to_be_bytes(), rest].concat(),
        _ => frame.to_vec(),
    }
}

/// Whether a frame is of DHCP, by the protocol and its ports.
fn is_dhcp(frame: &[u8]) -> bool {
    const UDP: u8 = 17;
    let port =
        |offset: usize| frame.get(offset..offset + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    match frame.get(12..14) {
        Some([0x08, 0x00]) => frame.get(23) == Some(&UDP) && matches!(port(36), Some(67 | 68)),
        Some([0x86, 0xdd]) => frame.get(20) == Some(&UDP) && matches!(port(56), Some(546 | 547)),
        _ => false,
    }
}

fn is_router_advertisement(frame: &[u8]) -> bool {
    const ICMP: u8 = 58;
    frame.get(12..14) == Some(&[0x86, 0xdd]) && frame.get(20) == Some(&ICMP) && frame.get(54) == Some(&134)
}

/// An LLDP frame that names a VLAN (IEEE 802.1Q, annex D).
fn announcement(vlan: u16) -> Vec<u8> {
    let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 0x0e, 0x52, 0x54, 0, 0, 0, 0xfe, 0x88, 0xcc];
    let name = vlan.to_be_bytes();
    let tlvs: [(u8, &[u8]); 5] = [
        (1, &[4, 0x52, 0x54, 0, 0, 0, 0xfe]),
        (2, b"\x05port"),
        (3, &[0, 120]),
        (127, &[0, 0x80, 0xc2, 3, name[0], name[1], 3, b'l', b'a', b'b']),
        (0, &[]),
    ];
    for (kind, value) in tlvs {
        frame.extend([kind << 1, value.len() as u8]);
        frame.extend(value);
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_added_and_taken_away() {
        let frame = [&[7; ADDRESSES][..], &[0x86, 0xdd, 1, 2, 3]].concat();
        for vlan in [None, Some(100), Some(4094)] {
            assert_eq!(untagged(&tagged(&frame, vlan), vlan), Some(frame.clone()), "{vlan:?}");
        }
        assert_eq!(untagged(&frame, Some(100)), None);
        assert_eq!(untagged(&tagged(&frame, Some(101)), Some(100)), None);
    }

    #[test]
    fn dhcp_and_routers_are_recognised() {
        let frame = |kind: [u8; 2], fields: &[(usize, u8)]| {
            let mut frame = vec![0; 100];
            frame[12..14].copy_from_slice(&kind);
            for (offset, value) in fields {
                frame[*offset] = *value;
            }
            frame
        };
        for (frame, dhcp, router) in [
            (frame([0x08, 0x00], &[(23, 17), (37, 67)]), true, false),
            (frame([0x08, 0x00], &[(23, 6), (37, 67)]), false, false),
            (frame([0x86, 0xdd], &[(20, 17), (56, 2), (57, 35)]), true, false),
            (frame([0x86, 0xdd], &[(20, 58), (54, 134)]), false, true),
            (frame([0x86, 0xdd], &[(20, 58), (54, 135)]), false, false),
            (vec![], false, false),
        ] {
            assert_eq!((is_dhcp(&frame), is_router_advertisement(&frame)), (dhcp, router));
        }
    }
}
