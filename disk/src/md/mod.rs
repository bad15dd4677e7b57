//! Arrays of Linux' software RAID: what is wanted ([`config`]), what is on disks ([`superblock`]), what the kernel
//! runs ([`mod@array`]), and the program that makes and [starts](assemble) them.

pub mod array;
pub mod assemble;
pub mod config;
pub(crate) mod mdadm;
mod member;
pub mod superblock;

pub use member::MemberDevice;
