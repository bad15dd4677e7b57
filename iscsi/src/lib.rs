//! iSCSI of the machine: the export of its disk to other machines, and the disks from which its firmware booted.
//!
//! The disk of another machine, as a conductor writes it, is a matter of `farrier-disk`: whatever can be written to
//! is made there ([`farrier_disk::Sectors`]).

pub mod firmware_boot;
pub mod target;

mod error;

pub use error::Error;
