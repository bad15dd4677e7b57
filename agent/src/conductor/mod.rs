//! The conductor as the agent sees it (section 2).

pub mod client;
pub mod discovery;
pub mod error;
pub mod heartbeat;
pub mod lookup;
pub mod token;
