//! Boot from virtual media: the BMC reads an ISO from the conductor by HTTP, and the machine takes it for a CD (sections
//! 6.8 and 6.9).
//!
//! What a medium is made of is its [`IsoSpec`]: an ISO of the site with what differs for each boot laid over it while it is
//! read ([`farrier_media::boot_iso`]), or a kernel with its ramdisk ([`farrier_media::boot_volume`]). Files on servers that
//! send parts of them are not copied. It has a secret URL that ends with the boot ([`published_media`]).
//! [`interface`] is the boot interface, and [`HttpsBoot`] that by which firmware loads the medium itself. They work by the node's management
//! interface, whatever that speaks.

mod error;
mod https;
pub mod interface;
mod iso_spec;
mod loaders;
pub mod published_media;
mod source;
mod virtual_medium;

pub use error::MediumError;
pub use https::HttpsBoot;
pub use interface::VirtualMediaBoot;
pub use iso_spec::IsoSpec;
pub use loaders::{Firmware, MediaLoaders};
pub use published_media::PublishedMedia;
pub use virtual_medium::Medium;

use farrier_conductor::Drivers;

/// The name of the boot interface.
pub const NAME: &str = "redfish-virtual-media";

/// Its name for machines of HPE.
pub const NAME_OF_ILO: &str = "ilo-virtual-media";

/// Its name for machines of Dell.
pub const NAME_OF_IDRAC: &str = "idrac-redfish-virtual-media";

/// The name of the boot interface by which firmware loads the medium itself.
pub const NAME_OF_HTTPS: &str = "redfish-https";

/// Adds the boot interface under all of its names, and that by which firmware loads the medium itself, for hardware types
/// that name them.
pub fn with_virtual_media(drivers: Drivers, boot: VirtualMediaBoot) -> Drivers {
    let drivers = drivers.boot(NAME_OF_HTTPS, HttpsBoot::new(boot.clone()));
    drivers.boot(NAME, boot.clone()).boot(NAME_OF_ILO, boot.clone()).boot(NAME_OF_IDRAC, boot)
}
