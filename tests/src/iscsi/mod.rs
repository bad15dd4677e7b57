//! Both ends of iSCSI.

pub mod exporter;
pub mod initiator;
pub mod target;
