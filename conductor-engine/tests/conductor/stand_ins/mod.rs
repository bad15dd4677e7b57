//! What stands in for the world around a conductor: machines, agents, an operator, and a store that can be shut.

pub mod agent;
pub mod gate;
pub mod machine;
pub mod operator;
pub mod stage;
pub mod witness;
