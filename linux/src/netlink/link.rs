//! Interfaces: listing them, making them, and how they hang together.

use super::{Netlink, index};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    BondLacpRate, BondMode, BondXmitHashPolicy, InfoBond, InfoData, InfoKind, InfoVlan, LinkAttribute,
    LinkFlags, LinkInfo, LinkMessage,
};
use std::io;

/// A network interface as the kernel knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Name of the interface.
    pub name: String,
    /// Hardware address, the permanent one where the driver reports it (F43).
    pub hardware_address: Vec<u8>,
}

/// How the ports of a bond work together (the kernel's `bonding` documentation).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bond {
    /// Who sends when.
    pub mode: BondMode,
    /// Milliseconds between looks at the ports' carriers; 0 never looks.
    pub miimon: u32,
    /// Milliseconds that a carrier must be there before its port is used.
    pub up_delay: u32,
    /// Milliseconds that a carrier must be gone before its port is given up.
    pub down_delay: u32,
    /// How often the partner is asked to speak, with LACP only.
    pub lacp_rate: Option<BondLacpRate>,
    /// What decides which port a packet takes.
    pub hash_policy: Option<BondXmitHashPolicy>,
}

impl Default for Bond {
    fn default() -> Self {
        // Looking ten times a second is what everybody sets.
        Self {
            mode: BondMode::ActiveBackup,
            miimon: 100,
            up_delay: 0,
            down_delay: 0,
            lacp_rate: None,
            hash_policy: None,
        }
    }
}

impl Netlink {
    /// Every interface of the machine.
    ///
    /// # Errors
    ///
    /// The kernel's refusal, or a reply that cannot be read.
    pub fn links(&self) -> io::Result<Vec<Link>> {
        let found = self.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
        let links = found.iter().filter_map(|message| match message {
            RouteNetlinkMessage::NewLink(link) => Some(describe(link)),
            _ => None,
        });
        Ok(links.collect())
    }

    /// Sets a link up.
    ///
    /// # Errors
    ///
    /// `ENODEV` when there is no such interface, `EPERM` without the right to change it.
    pub fn set_up(&self, interface: &str) -> io::Result<()> {
        self.set_flags(interface, LinkFlags::Up)
    }

    /// Sets a link down.
    ///
    /// # Errors
    ///
    /// As [`Netlink::set_up`].
    pub fn set_down(&self, interface: &str) -> io::Result<()> {
        self.set_flags(interface, LinkFlags::empty())
    }

    /// Sets the largest packet of a link in bytes.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the hardware cannot do that.
    pub fn set_mtu(&self, interface: &str, bytes: u32) -> io::Result<()> {
        self.change(interface, LinkAttribute::Mtu(bytes))
    }

    /// Sets the hardware address of a link.
    ///
    /// # Errors
    ///
    /// `EBUSY` when the link must be down for that, `EOPNOTSUPP` when it has a fixed one.
    pub fn set_hardware_address(&self, interface: &str, address: [u8; 6]) -> io::Result<()> {
        self.change(interface, LinkAttribute::Address(address.to_vec()))
    }

    /// Makes an interface a port of a bond or a bridge. It must be down to become that of a bond.
    ///
    /// # Errors
    ///
    /// `EPERM` when it is up, `EBUSY` when it is a port of another one.
    pub fn attach(&self, port: &str, controller: &str) -> io::Result<()> {
        self.change(port, LinkAttribute::Controller(index(controller)?))
    }

    /// Makes an interface for a VLAN on another one.
    ///
    /// # Errors
    ///
    /// `EEXIST` when there is an interface of that name, `EOPNOTSUPP` when the kernel knows no VLANs.
    pub fn add_vlan(&self, parent: &str, name: &str, number: u16) -> io::Result<()> {
        let data = InfoData::Vlan(vec![InfoVlan::Id(number)]);
        self.make(name, InfoKind::Vlan, Some(data), vec![LinkAttribute::Link(index(parent)?)])
    }

    /// Makes a bond without ports.
    ///
    /// # Errors
    ///
    /// `EEXIST` when there is an interface of that name, `EOPNOTSUPP` when the kernel knows no bonds,
    /// `EINVAL` when the settings contradict each other.
    pub fn add_bond(&self, name: &str, bond: &Bond) -> io::Result<()> {
        let mut data = vec![InfoBond::Mode(bond.mode), InfoBond::MiiMon(bond.miimon)];
        // The kernel takes delays only of a bond that looks at carriers.
        if bond.miimon > 0 {
            data.extend([InfoBond::UpDelay(bond.up_delay), InfoBond::DownDelay(bond.down_delay)]);
        }
        data.extend(bond.lacp_rate.map(InfoBond::AdLacpRate));
        data.extend(bond.hash_policy.map(InfoBond::XmitHashPolicy));
        self.make(name, InfoKind::Bond, Some(InfoData::Bond(data)), Vec::new())
    }

    /// Makes a bridge without ports.
    ///
    /// # Errors
    ///
    /// `EEXIST` when there is an interface of that name, `EOPNOTSUPP` when the kernel knows no bridges.
    pub fn add_bridge(&self, name: &str) -> io::Result<()> {
        self.make(name, InfoKind::Bridge, None, Vec::new())
    }

    /// Removes an interface that was made.
    ///
    /// # Errors
    ///
    /// `ENODEV` when there is none, `EOPNOTSUPP` when it is a real one.
    pub fn remove(&self, interface: &str) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index(interface)?;
        self.request(RouteNetlinkMessage::DelLink(message), 0)
    }

    fn make(
        &self,
        name: &str,
        kind: InfoKind,
        data: Option<InfoData>,
        further: Vec<LinkAttribute>,
    ) -> io::Result<()> {
        let mut info = vec![LinkInfo::Kind(kind)];
        info.extend(data.map(LinkInfo::Data));
        let mut message = LinkMessage::default();
        message.attributes = vec![LinkAttribute::IfName(name.to_owned()), LinkAttribute::LinkInfo(info)];
        message.attributes.extend(further);
        self.request(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    fn change(&self, interface: &str, attribute: LinkAttribute) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index(interface)?;
        message.attributes = vec![attribute];
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    fn set_flags(&self, interface: &str, flags: LinkFlags) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index(interface)?;
        message.header.flags = flags;
        message.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }
}

fn describe(link: &LinkMessage) -> Link {
    let mut name = String::new();
    let (mut current, mut permanent) = (Vec::new(), Vec::new());
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(text) => name.clone_from(text),
            LinkAttribute::Address(bytes) => current.clone_from(bytes),
            LinkAttribute::PermAddress(bytes) => permanent.clone_from(bytes),
            _ => {}
        }
    }
    let is_known = permanent.iter().any(|byte| *byte != 0);
    Link { name, hardware_address: if is_known { permanent } else { current } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_interface_is_an_error() {
        let netlink = Netlink::open().unwrap();
        for outcome in [
            netlink.set_up("nosuch0"),
            netlink.set_down("nosuch0"),
            netlink.set_mtu("nosuch0", 1500),
            netlink.attach("nosuch0", "lo"),
            netlink.remove("nosuch0"),
        ] {
            assert_eq!(outcome.unwrap_err().raw_os_error(), Some(nix::libc::ENODEV));
        }
    }

    #[test]
    fn every_machine_has_a_loopback_link() {
        let links = Netlink::open().unwrap().links().unwrap();
        assert!(links.iter().any(|link| link.name == "lo" && link.hardware_address == [0; 6]), "{links:?}");
    }
}
