//! The node record and the states it moves through.

pub mod node;
pub mod states;

pub use node::{AgentSession, DriverInternalInfo, MacAddress, NewNode, Node, PlannedStep};
pub use states::{Event, PowerState, ProvisionState};
