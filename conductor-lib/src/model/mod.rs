//! The node record and the states it moves through.

pub mod node;
pub mod states;
pub mod transitions;

pub use node::{AgentSession, DriverInternalInfo, MacAddress, NewNode, Node, PlannedStep};
pub use states::{Activity, Family, PowerState, ProvisionState};
pub use transitions::Event;
