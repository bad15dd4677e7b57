//! Bytes of media: what boots a machine, and what a system finds when it has booted.
//!
//! Conductors, the builder of the ramdisk and the ramdisk itself use it alike. It knows no devices and no network.
//!
//! Section numbers in the documentation refer to the conductor contract.

pub mod boot_iso;
pub mod boot_volume;
pub mod config_drive;
mod esp;
pub mod iso9660;
mod kernel_parameters;
mod overlay;
pub mod ramdisk_media;
pub mod volume;

pub use kernel_parameters::{KernelParameterError, KernelParameters};
pub use overlay::Overlay;
