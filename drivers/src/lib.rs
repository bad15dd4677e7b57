//! Drivers: what a conductor reaches its machines with. Each is a cargo feature.
//!
//! They use only the public interface of `farrier-conductor`, as a driver of another author would.

#[cfg(feature = "agent-power")]
pub mod agent_power;
#[cfg(any(feature = "ipmitool", feature = "openstack", feature = "redfish", feature = "virtual-media"))]
pub mod client;
#[cfg(any(feature = "netboot", feature = "qemu"))]
pub mod cpu_arch;
#[cfg(any(feature = "netboot", feature = "openstack"))]
pub mod dhcp;
#[cfg(feature = "fake")]
pub mod fake;
#[cfg(feature = "ilo")]
pub mod ilo;
#[cfg(feature = "ipmitool")]
pub mod ipmitool;
#[cfg(feature = "iscsi")]
pub mod iscsi;
#[cfg(feature = "manual")]
pub mod manual;
#[cfg(feature = "netboot")]
pub mod netboot;
#[cfg(feature = "openstack")]
pub mod network;
#[cfg(feature = "openstack")]
pub mod openstack;
#[cfg(feature = "qemu")]
pub mod qemu;
#[cfg(feature = "redfish")]
pub mod redfish;
#[cfg(feature = "virtual-media")]
pub mod virtual_media;
