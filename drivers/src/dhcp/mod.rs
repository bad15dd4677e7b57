//! DHCP servers that tell firmware what to load (section 6.7).
//!
//! - [`option_text`]: options as lines of dnsmasq's files.
//! - [`dnsmasq`]: a dnsmasq that reads the options from files.
//! - [`site`]: the configuration of our dnsmasq, beside a site's DHCP server or instead of it.
//! - [`lease`]: what dnsmasq says about addresses.
//! - `neutron`: the DHCP service of OpenStack's networks, by options of their ports.

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
