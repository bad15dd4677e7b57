//! Boot from virtual media: the BMC reads an ISO from the conductor by HTTP, and the machine takes it for a CD (sections
//! 6.8 and 6.9).
//!
//! What a medium is made of is its [`Recipe`]: an ISO of the site with what differs for each boot laid over it while it is
//! read ([`farrier_media::boot_iso`]), or a kernel with its ramdisk ([`farrier_media::boot_volume`]). Files on servers that
//! send parts of them are not copied. It has an address that nobody can guess and that ends with the boot ([`shelf`]).
//! [`interface`] is the boot interface. It works by the node's management interface, whatever that speaks.

mod error;
pub mod interface;
mod loaders;
mod medium;
mod recipe;
pub mod shelf;
mod source;

pub use error::MediumError;
pub use interface::VirtualMediaBoot;
pub use loaders::{Firmware, MediaLoaders};
pub use medium::Medium;
pub use recipe::Recipe;
pub use shelf::Shelf;

use farrier_conductor::Builder;

/// The name of the boot interface.
pub const NAME: &str = "redfish-virtual-media";

/// Its name for machines of HPE.
pub const NAME_OF_ILO: &str = "ilo-virtual-media";

/// Adds the boot interface under both of its names, for hardware types that name them.
pub fn with_virtual_media(builder: Builder, boot: VirtualMediaBoot) -> Builder {
    builder.boot(NAME, boot.clone()).boot(NAME_OF_ILO, boot)
}
