//! Asking routers to announce themselves (RFC 4861, 6.3.7).

use nix::sys::socket::sockopt::{BindToDevice, Ipv6MulticastHops};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn6, sendto, setsockopt, socket,
};
use std::ffi::OsString;
use std::io;
use std::net::{Ipv6Addr, SocketAddrV6};
use std::os::fd::AsRawFd;

/// Every router of a link.
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// Type of the message, its code, room for the checksum, and a reserved field.
const SOLICITATION: [u8; 8] = [133, 0, 0, 0, 0, 0, 0, 0];
/// What proves that a message was not forwarded.
const HOPS: i32 = 255;

/// Asks the routers on the link of an interface to announce themselves.
///
/// # Errors
///
/// `EPERM` without the right to raw sockets, `ENODEV` when there is no such interface,
/// `EADDRNOTAVAIL` while the interface has no address to ask from.
pub fn solicit_routers(interface: &str) -> io::Result<()> {
    let index = nix::net::if_::if_nametoindex(interface)?;
    // The kernel fills the checksum in.
    let socket = socket(AddressFamily::Inet6, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::IcmpV6)?;
    setsockopt(&socket, BindToDevice, &OsString::from(interface))?;
    setsockopt(&socket, Ipv6MulticastHops, &HOPS)?;
    let target = SockaddrIn6::from(SocketAddrV6::new(ALL_ROUTERS, 0, 0, index));
    sendto(socket.as_raw_fd(), &SOLICITATION, &target, MsgFlags::empty())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_interface_is_an_error() {
        assert_eq!(solicit_routers("nosuch0").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
