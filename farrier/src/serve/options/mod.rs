//! The options of `farrier serve`, by what they are about.

pub(crate) mod agents;
pub(crate) mod cleaning;
pub(crate) mod deadlines;
pub(crate) mod dhcp;
pub(crate) mod hardware;
pub(crate) mod images;
pub(crate) mod inspection;
pub(crate) mod limits;
pub(crate) mod netboot;
pub(crate) mod neutron;
