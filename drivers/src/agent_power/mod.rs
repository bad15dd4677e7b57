//! The power interface `agent`: the agent that runs on a machine without a BMC reboots it (section 4.6).
//!
//! An agent that is gone accepts no order, so it stays from one operation to the next: fast track must be on for
//! the node. That the machine leaves and comes back is the conductor's to see.

mod power;

pub use power::AgentPower;

/// The name of the interface.
pub const NAME: &str = "agent";
