//! What the clients of BMCs and of OpenStack have in common, whatever protocol they speak.
//!
//! - [`rate_limit`]: how often a BMC is asked.
//! - [`secret`]: passwords and tokens, in a type that does not print.
//! - `refusals`: when a refused password counts as wrong.
//! - `gzip`: compressed answers.
//! - `error_chain`: the cause of a request that failed.

#[cfg(any(feature = "openstack", feature = "redfish", feature = "virtual-media"))]
pub(crate) mod error_chain;
#[cfg(any(feature = "openstack", feature = "redfish"))]
pub(crate) mod gzip;
#[cfg(any(feature = "ipmitool", feature = "redfish"))]
pub mod rate_limit;
#[cfg(any(feature = "ipmitool", feature = "openstack", feature = "redfish"))]
pub(crate) mod refusals;
#[cfg(any(feature = "ipmitool", feature = "openstack", feature = "redfish"))]
pub mod secret;
