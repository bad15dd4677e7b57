//! The ways to boot from the network, each of which is a boot interface.

use super::names::Dialect;
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::{BootMode, Node};

/// One of the boot interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// A loader of its own, by TFTP: PXELINUX or GRUB.
    Pxe,
    /// iPXE, by TFTP or out of the card itself.
    Ipxe,
    /// GRUB, by HTTP of UEFI.
    Http,
    /// iPXE, by HTTP of UEFI.
    HttpIpxe,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pxe, Self::Ipxe, Self::Http, Self::HttpIpxe];

    /// Its name, as Ironic has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pxe => "pxe",
            Self::Ipxe => "ipxe",
            Self::Http => "http",
            Self::HttpIpxe => "http-ipxe",
        }
    }

    /// Whether iPXE is what boots.
    pub fn is_ipxe(self) -> bool {
        matches!(self, Self::Ipxe | Self::HttpIpxe)
    }

    /// Whether firmware loads by HTTP.
    pub fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::HttpIpxe)
    }

    /// The language of the loader of a node's machine.
    ///
    /// # Errors
    ///
    /// The machine cannot boot like this.
    pub(super) fn dialect(self, node: &Node) -> Result<Dialect, InterfaceError> {
        match (self, node.boot_mode()?) {
            (Self::Http | Self::HttpIpxe, BootMode::Bios) => Err(InterfaceError::invalid(
                "capabilities",
                "boot_mode is bios, and only UEFI boots by HTTP; choose the boot interface ipxe or pxe",
            )),
            (Self::Ipxe | Self::HttpIpxe, _) => Ok(Dialect::Ipxe),
            (Self::Pxe, BootMode::Bios) => Ok(Dialect::Pxelinux),
            (Self::Pxe | Self::Http, BootMode::Uefi) => Ok(Dialect::Grub),
        }
    }
}
