//! Kernel events about devices that come and go.

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_KOBJECT_UEVENT};
use std::collections::BTreeMap;
use std::io;

/// Receives the kernel's device events.
#[derive(Debug)]
pub struct UeventSocket {
    socket: Socket,
}

/// One event, with its properties such as `MODALIAS`, `SUBSYSTEM` and `INTERFACE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uevent {
    /// `add`, `remove`, `change`, …
    pub action: String,
    /// All `KEY=value` pairs.
    pub properties: BTreeMap<String, String>,
}

impl UeventSocket {
    /// Joins the kernel's multicast group.
    ///
    /// # Errors
    ///
    /// The kernel's refusal; needs the right to administer the network namespace.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_KOBJECT_UEVENT)?;
        // A machine with hundreds of devices sends its events in one burst.
        socket.set_rx_buf_sz(4 * 1024 * 1024)?;
        socket.bind(&SocketAddr::new(0, 1))?;
        Ok(Self { socket })
    }

    /// Waits for the next event. Text that is not an event of the kernel is passed over.
    ///
    /// # Errors
    ///
    /// `ENOBUFS` when events were lost: the caller looks at all devices again.
    pub fn next(&self) -> io::Result<Uevent> {
        loop {
            let (bytes, sender) = self.socket.recv_from_full()?;
            // Port 0 is the kernel; anybody else could forge events.
            if sender.port_number() != 0 {
                continue;
            }
            if let Some(event) = Uevent::parse(&bytes) {
                return Ok(event);
            }
        }
    }
}

impl Uevent {
    /// Reads `action@path\0KEY=value\0…`.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut parts = text.split('\0');
        let (action, _path) = parts.next()?.split_once('@')?;
        let properties = parts
            .filter_map(|part| part.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        Some(Self { action: action.to_owned(), properties })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_garbage_is_not() {
        let event =
            Uevent::parse(b"add@/devices/pci0/x\0ACTION=add\0MODALIAS=pci:v0d0=1\0SUBSYSTEM=pci\0").unwrap();
        assert_eq!(event.action, "add");
        assert_eq!(event.properties["MODALIAS"], "pci:v0d0=1");
        for garbage in [&b"libudev\0\xfe\xed"[..], b"", b"no separator", b"\xff\xff@x"] {
            assert_eq!(Uevent::parse(garbage), None);
        }
    }
}
