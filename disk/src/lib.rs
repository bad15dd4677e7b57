//! Disks: listing, choosing the root disk, and everything that is put on it besides the image.
//!
//! Whatever destroys data takes [`Sectors`]: those of a [`WritableDisk`], which only [`guard`] can make, from the
//! choice of the root disk and after the exclusion list, or [`iscsi_session`], from the only disk of a session of ours;
//! or of a [`RemoteDisk`], which only a proven session can be.

pub mod config_drive;
pub mod device;
pub mod ephemeral;
pub mod error;
pub mod fat;
pub mod filesystem;
pub mod guard;
pub mod hints;
pub mod io;
pub mod iscsi_session;
pub mod layout;
pub mod list;
pub mod map;
pub mod md;
pub mod partition_image;
pub mod probe;
pub mod raid;
pub mod table;
pub mod wipe;

mod foreign;
mod tree;

#[cfg(test)]
mod fake_sysfs;

pub use device::BlockDevice;
pub use error::Error;
pub use guard::{RootDisk, choose_root_disk};
pub use io::{HandedOverDisk, RemoteDisk, Sectors, WritableDisk};
