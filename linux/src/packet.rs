//! Raw Ethernet frames of one protocol on one interface.

#![allow(unsafe_code)]

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Instant;

/// Largest frame that is kept whole.
const MAX_FRAME: usize = 9216;

/// A socket that receives the frames of one Ethernet protocol from one interface.
#[derive(Debug)]
pub struct PacketSocket {
    descriptor: OwnedFd,
}

impl PacketSocket {
    /// Opens a socket for a protocol, joined to the given multicast groups.
    ///
    /// # Errors
    ///
    /// `EPERM` without the right to raw sockets, `ENODEV` when there is no such interface.
    pub fn open(interface: &str, protocol: u16, groups: &[[u8; 6]]) -> io::Result<Self> {
        let index = nix::net::if_::if_nametoindex(interface)?.cast_signed();
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // Protocol 0 receives nothing until the socket is bound to its interface.
        // SAFETY: takes plain numbers.
        let raw = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        let socket = Self { descriptor: unsafe { OwnedFd::from_raw_fd(raw) } };
        for group in groups {
            socket.join(index, group)?;
        }
        socket.bind(index, protocol)?;
        Ok(socket)
    }

    /// The next frame with its Ethernet header; nothing when none is waiting.
    ///
    /// # Errors
    ///
    /// `ENETDOWN` when the interface went away.
    pub fn receive(&self) -> io::Result<Option<Vec<u8>>> {
        let mut frame = vec![0_u8; MAX_FRAME];
        // SAFETY: the kernel writes at most `frame.len()` bytes to a buffer of that length.
        let length =
            unsafe { libc::recv(self.descriptor.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), 0) };
        let Ok(length) = usize::try_from(length) else {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        };
        frame.truncate(length);
        Ok(Some(frame))
    }

    /// Sends a frame with its Ethernet header.
    ///
    /// # Errors
    ///
    /// `ENETDOWN` while the interface is down.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the kernel reads `frame.len()` bytes of a slice of that length.
        let sent = unsafe { libc::send(self.descriptor.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn join(&self, index: i32, group: &[u8; 6]) -> io::Result<()> {
        // SAFETY: all zeroes is a valid value of this plain structure.
        let mut request: libc::packet_mreq = unsafe { zeroed() };
        request.mr_ifindex = index;
        request.mr_type = libc::PACKET_MR_MULTICAST as u16;
        request.mr_alen = group.len() as u16;
        request.mr_address[..group.len()].copy_from_slice(group);
        // SAFETY: the kernel reads a structure of the given size, which outlives the call.
        let outcome = unsafe {
            libc::setsockopt(
                self.descriptor.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_ADD_MEMBERSHIP,
                (&raw const request).cast(),
                size_of::<libc::packet_mreq>() as libc::socklen_t,
            )
        };
        nix::errno::Errno::result(outcome)?;
        Ok(())
    }

    fn bind(&self, index: i32, protocol: u16) -> io::Result<()> {
        // SAFETY: all zeroes is a valid value of this plain structure.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = index;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel reads a structure of the given size, which outlives the call.
        let outcome = unsafe { libc::bind(self.descriptor.as_raw_fd(), (&raw const address).cast(), length) };
        nix::errno::Errno::result(outcome)?;
        Ok(())
    }
}

/// Whether a frame arrives on one of the sockets before the deadline; not without sockets.
pub fn wait_for_frame<'a>(sockets: impl Iterator<Item = &'a PacketSocket>, deadline: Instant) -> bool {
    let mut descriptors: Vec<_> =
        sockets.map(|socket| PollFd::new(socket.descriptor.as_fd(), PollFlags::POLLIN)).collect();
    let left = deadline.saturating_duration_since(Instant::now());
    // Rounded up, so that the last fraction of a millisecond is not spent turning round.
    let timeout = PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX);
    !descriptors.is_empty() && !left.is_zero() && poll(&mut descriptors, timeout).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_interface_is_an_error() {
        let error = PacketSocket::open("nosuch0", 0x88cc, &[]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
