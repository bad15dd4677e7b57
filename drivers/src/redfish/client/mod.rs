//! The client of BMCs that speak Redfish, for all interfaces.
//!
//! [`bmcs`] has one [`bmc`] for each machine, which waits for its rate limit, proves who asks ([`session`]), sends a request
//! ([`exchange`]), and waits for the [`task`] that some BMCs begin for it. [`connection`] is what a record says of a BMC,
//! [`trust`] its certificate and [`settings`] what a conductor has for all. An answer is a [`resource`], with the values
//! that it is [`allowable`] to send; what a BMC refuses is read in [`message`].

pub(in crate::redfish) mod allowable;
pub(in crate::redfish) mod bmc;
pub(in crate::redfish) mod bmcs;
pub(in crate::redfish) mod connection;
pub(in crate::redfish) mod error;
pub(in crate::redfish) mod exchange;
pub(in crate::redfish) mod message;
pub(in crate::redfish) mod resource;
pub(in crate::redfish) mod session;
pub(in crate::redfish) mod settings;
pub(in crate::redfish) mod task;
pub(in crate::redfish) mod trust;
