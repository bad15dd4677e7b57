//! Agents in emulated machines: commanded by a test, told by a conductor that agrees to everything, and harmed.

pub mod commanded;
pub mod hostility;
pub mod stub_conductor;
