//! What the agent does for rescues.

mod agent;

pub use agent::AgentRescue;
