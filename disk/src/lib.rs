//! Disks: listing, choosing the root disk, and everything that is put on it besides the image.
//!
//! Whatever destroys data takes a [`WritableDisk`], which only [`guard`] can make, from the choice of
//! the root disk and after the exclusion list.

pub mod boot_entry;
pub mod boot_mode;
pub mod bootloader;
pub mod config_drive;
pub mod device;
pub mod ephemeral;
pub mod error;
pub mod filesystem;
pub mod guard;
pub mod hints;
pub mod iscsi_boot;
pub mod layout;
pub mod list;
pub mod multipath;
pub mod partition_image;
pub mod probe;
pub mod raid;
pub mod table;
pub mod view;
pub mod wipe;
pub mod zero;

mod by_path;
mod command_set;
mod foreign;
mod identity;
mod stack;
mod transport;
mod tree;

#[cfg(test)]
mod fake_sysfs;

pub use device::BlockDevice;
pub use error::Error;
pub use guard::{HandedOverDisk, RootDisk, WritableDisk, choose_root_disk};
