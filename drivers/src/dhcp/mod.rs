//! DHCP servers that tell firmware what to load (section 6.7).
//!
//! - [`option_text`]: options as lines of dnsmasq's files.
//! - [`dnsmasq`]: a dnsmasq that is told so by files.
//! - [`site`]: the configuration of a dnsmasq of our own, beside a site's DHCP server or in its place.
//! - [`lease`]: what dnsmasq says about addresses.

pub mod dnsmasq;
pub mod lease;
pub mod option_text;
pub mod site;
