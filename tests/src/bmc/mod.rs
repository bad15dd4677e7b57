//! BMCs of emulated machines, and media for their virtual drives.

pub mod in_band;
pub mod ipmi;
pub mod libvirt;
pub mod media;
pub mod redfish;
