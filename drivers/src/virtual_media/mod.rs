//! Boot from virtual media: the BMC reads an ISO from the conductor by HTTP, and the machine takes it for a CD (sections
//! 6.8 and 6.9).
//!
//! The ISO of a site is the same for all machines. What differs for each boot is laid over it while it is read
//! ([`farrier_media::boot_iso`]), under an address that nobody can guess and that ends with the boot ([`shelf`]).
//! [`interface`] is the boot interface. It works by the node's management interface, whatever that speaks.

pub mod interface;
pub mod shelf;

pub use interface::VirtualMediaBoot;
pub use shelf::{Medium, Shelf};

use farrier_conductor::Builder;

/// The name of the boot interface.
pub const NAME: &str = "redfish-virtual-media";

/// Its name for machines of HPE.
pub const NAME_OF_ILO: &str = "ilo-virtual-media";

/// Adds the boot interface under both of its names, for hardware types that name them.
pub fn with_virtual_media(builder: Builder, boot: VirtualMediaBoot) -> Builder {
    builder.boot(NAME, boot.clone()).boot(NAME_OF_ILO, boot)
}
