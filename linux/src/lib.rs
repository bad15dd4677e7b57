//! Kernel interfaces, as plain blocking Rust.
//!
//! Everything that talks to Linux directly lives here: ioctls, mounts, modules, netlink, external
//! programs. Nothing in this crate knows what a deployment is. It is also the only crate with
//! `unsafe` code, each block with the argument why it is sound.

pub mod aligned;
pub mod ata;
#[cfg(feature = "blkid")]
pub mod blkid;
pub mod block;
pub mod clock;
pub mod configfs;
pub mod console;
pub mod device_mapper;
pub mod dhcp;
pub mod drive;
pub mod driverless;
pub mod efivars;
pub mod hardware_address;
pub mod icmpv6;
pub mod infiniband;
pub mod ipmi;
pub mod kernel_line;
pub mod kernel_log;
pub mod loop_device;
pub mod modules;
pub mod mount;
pub mod netlink;
pub mod nvme;
pub mod packet;
pub mod power;
pub mod priority;
pub mod private_mounts;
pub mod process;
pub mod rooted;
pub mod scsi;
pub mod sysfs;
pub mod uevent;
