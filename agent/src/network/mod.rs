//! The agent on the network: waiting until it is up ([`mod@wait`]), VLANs, and the one HTTP client with its downloads.

pub mod download;
pub mod http;
pub mod vlan;
pub mod wait;
