//! At which address of the host a datagram came in, which a socket that listens at all of them does not tell by itself.

use nix::cmsg_space;
use nix::libc;
use nix::sys::socket::sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// A datagram that came in.
#[derive(Debug)]
pub(super) struct Asked {
    /// Bytes of it.
    pub(super) length: usize,
    /// Who sent it.
    pub(super) client: SocketAddr,
    /// The address of this host that it was sent to, with any port; nothing where the kernel does not tell.
    pub(super) at: Option<SocketAddr>,
}

/// Has a socket tell of each datagram where it came in.
pub(super) fn enable_packet_info(socket: &UdpSocket) -> io::Result<()> {
    match socket.local_addr()? {
        SocketAddr::V4(_) => setsockopt(socket, Ipv4PacketInfo, &true)?,
        SocketAddr::V6(_) => setsockopt(socket, Ipv6RecvPacketInfo, &true)?,
    }
    Ok(())
}

/// Waits for a datagram.
pub(super) async fn receive(socket: &UdpSocket, packet: &mut [u8]) -> io::Result<Asked> {
    socket.async_io(Interest::READABLE, || receive_now(socket, packet)).await
}

fn receive_now(socket: &UdpSocket, packet: &mut [u8]) -> io::Result<Asked> {
    let mut control = cmsg_space!(libc::in6_pktinfo);
    let mut parts = [IoSliceMut::new(packet)];
    let message =
        recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())?;
    let client = message.address.as_ref().and_then(|address| {
        let v4 = address.as_sockaddr_in().map(|address| SocketAddr::V4(SocketAddrV4::from(*address)));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| SocketAddr::V6(SocketAddrV6::from(*address))))
    });
    let client = client.ok_or(io::ErrorKind::AddrNotAvailable)?;
    let at = message.cmsgs()?.find_map(|info| address(&info));
    Ok(Asked { length: message.bytes, client, at })
}

/// The address that can be answered from: for a datagram to all of a network, that of the host there.
fn address(info: &ControlMessageOwned) -> Option<SocketAddr> {
    match info {
        ControlMessageOwned::Ipv4PacketInfo(info) => {
            let own = Ipv4Addr::from(u32::from_be(info.ipi_spec_dst.s_addr));
            (!own.is_unspecified()).then(|| SocketAddr::new(own.into(), 0))
        }
        ControlMessageOwned::Ipv6PacketInfo(info) => {
            let own = Ipv6Addr::from(info.ipi6_addr.s6_addr);
            // One of a link is one of several, told apart by its interface.
            let link = if own.is_unicast_link_local() { info.ipi6_ifindex } else { 0 };
            (!own.is_multicast()).then(|| SocketAddrV6::new(own, 0, 0, link).into())
        }
        _ => None,
    }
}
