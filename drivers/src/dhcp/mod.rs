//! DHCP servers that tell firmware what to load (section 6.7).
//!
//! - [`option_text`]: options as lines of dnsmasq's files.
//! - [`dnsmasq`]: a dnsmasq that is told so by files.
//! - [`site`]: the configuration of a dnsmasq of our own, beside a site's DHCP server or in its place.
//! - [`lease`]: what dnsmasq says about addresses.
//! - `neutron`: the DHCP service of OpenStack's networks, which is told by their ports.

#[cfg(feature = "netboot")]
pub mod dnsmasq;
#[cfg(feature = "netboot")]
pub mod lease;
#[cfg(feature = "openstack")]
pub mod neutron;
#[cfg(feature = "netboot")]
pub mod option_text;
#[cfg(feature = "netboot")]
pub mod site;
