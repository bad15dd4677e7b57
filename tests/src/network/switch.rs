//! A switch between the network cards of a machine and QEMU's user network, for what that network
//! cannot do: VLANs, several cards, announcements, and silence where a DHCP server would be.
//!
//! QEMU sends frames as datagrams; nothing here needs rights.

use super::{lacp, router};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::ops::Range;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of the two hardware addresses in front of a frame.
const ADDRESSES: usize = 12;
/// Largest frame.
const MAX_FRAME: usize = 65_550;
/// EtherType of a VLAN tag.
const TAG: [u8; 2] = [0x81, 0x00];
/// How often to look whether something has happened.
const POLL: Duration = Duration::from_millis(100);
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
    /// Whether the switch is a router with a DHCP server for IPv6 ([`super::router`]).
    pub routes: bool,
    /// Whether the ports are one link of several cables ([`super::lacp`]).
    pub bundles: bool,
}

/// The switch; it works until the process ends.
#[derive(Debug)]
pub struct Switch {
    folder: PathBuf,
    macs: Vec<String>,
    fabric: Arc<Fabric>,
}

/// What frames go through.
#[derive(Debug)]
struct Fabric {
    behaviour: Behaviour,
    /// The socket towards the user network, and its far end.
    uplink: (UnixDatagram, PathBuf),
    /// The socket of each port, and its far end.
    ports: Vec<(UnixDatagram, PathBuf)>,
    requests: AtomicUsize,
    /// Ports that the machine has bundled.
    bundled: Mutex<BTreeSet<usize>>,
}

impl Switch {
    /// Starts a switch with a port for each hardware address, and its sockets in `folder`.
    ///
    /// # Errors
    ///
    /// The sockets cannot be made.
    pub fn start(folder: &Path, macs: &[&str], behaviour: Behaviour) -> Result<Self> {
        let ends = |name: &str| Ok((socket(folder, name)?, far_end(folder, name)));
        let fabric = Arc::new(Fabric {
            behaviour,
            uplink: ends("uplink")?,
            ports: (0..macs.len()).map(|number| ends(&port(number))).collect::<Result<_>>()?,
            requests: AtomicUsize::new(0),
            bundled: Mutex::default(),
        });
        for number in 0..macs.len() {
            let fabric = Arc::clone(&fabric);
            thread::spawn(move || forward(&fabric.ports[number].0, |frame| fabric.take(number, frame)));
        }
        if behaviour.announces {
            let fabric = Arc::clone(&fabric);
            thread::spawn(move || {
                loop {
                    fabric.send(&announcement(behaviour.vlan.unwrap_or(1)), 0..fabric.ports.len());
                    thread::sleep(ANNOUNCEMENT);
                }
            });
        }
        let downlink = Arc::clone(&fabric);
        thread::spawn(move || forward(&downlink.uplink.0, |frame| downlink.take_from_network(frame)));
        let macs = macs.iter().map(|mac| (*mac).to_owned()).collect();
        Ok(Self { folder: folder.to_owned(), macs, fabric })
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
        self.fabric.requests.load(Ordering::Relaxed)
    }

    /// Waits until the machine has bundled all ports with this switch.
    ///
    /// # Errors
    ///
    /// It has not after `limit`; the text names the ports that it has.
    pub fn wait_until_bundled(&self, limit: Duration) -> Result<()> {
        let started = Instant::now();
        loop {
            let bundled = self.fabric.bundled().clone();
            if bundled.len() == self.macs.len() {
                return Ok(());
            }
            if started.elapsed() > limit {
                bail!("of {} ports these are bundled: {bundled:?}", self.macs.len());
            }
            thread::sleep(POLL);
        }
    }

    fn link(&self, name: &str) -> String {
        let (near, far) = (self.folder.join(name), far_end(&self.folder, name));
        format!(
            "dgram,id={name},local.type=unix,local.path={},remote.type=unix,remote.path={}",
            far.display(),
            near.display()
        )
    }
}

impl Fabric {
    /// Takes a frame of the machine.
    fn take(&self, port: usize, frame: &[u8]) {
        if lacp::is_lacp(frame) {
            return self.take_lacp(port, frame);
        }
        let Some(frame) = untagged(frame, self.behaviour.vlan) else { return };
        let is_lost = || self.requests.fetch_add(1, Ordering::Relaxed) < self.behaviour.lost_requests;
        if is_dhcp(&frame) && is_lost() {
            return;
        }
        if let Some(answer) = router::answer(&frame).filter(|_| self.behaviour.routes) {
            return self.send(&tagged(&answer, self.behaviour.vlan), self.receivers());
        }
        // QEMU may have ended.
        self.uplink.0.send_to(&frame, &self.uplink.1).ok();
    }

    fn take_lacp(&self, port: usize, frame: &[u8]) {
        if self.behaviour.bundles {
            let mut bundled = self.bundled();
            if lacp::is_bundled(frame) {
                bundled.insert(port);
            } else {
                bundled.remove(&port);
            }
            self.send(&lacp::answer(frame, port), port..port + 1);
        }
    }

    fn take_from_network(&self, frame: &[u8]) {
        if !(self.behaviour.is_silent && (is_dhcp(frame) || is_router_advertisement(frame))) {
            self.send(&tagged(frame, self.behaviour.vlan), self.receivers());
        }
    }

    /// Ports to which frames for the machine go: all, or one of those that are one link.
    fn receivers(&self) -> Range<usize> {
        0..if self.behaviour.bundles { 1 } else { self.ports.len() }
    }

    fn send(&self, frame: &[u8], ports: Range<usize>) {
        for (socket, end) in &self.ports[ports] {
            // QEMU may not have started, or have ended.
            socket.send_to(frame, end).ok();
        }
    }

    fn bundled(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.bundled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn socket(folder: &Path, name: &str) -> Result<UnixDatagram> {
    let path = folder.join(name);
    UnixDatagram::bind(&path).with_context(|| format!("cannot make the socket {}", path.display()))
}

/// The socket of QEMU that talks to the one of that name.
fn far_end(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}-qemu"))
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
