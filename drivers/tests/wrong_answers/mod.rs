//! One answer is wrong: what that does to whatever is done ([`cells`]), and wrong answers by HTTP ([`http`]).
//!
//! The programs `redfish`, `neutron` and `ipmitool` have this, each for what answers there.

pub mod cells;
pub mod http;
