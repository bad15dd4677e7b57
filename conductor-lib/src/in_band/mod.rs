//! What the agent in a ramdisk does beside deployments: inspection, RAID volumes and rescues.

mod agent_inspect;
mod agent_raid;
mod agent_rescue;
mod inspect;
mod rescue;

pub use agent_inspect::{AgentInspect, add_ports_of_bmc, boot, take_over};
pub use agent_raid::AgentRaid;
pub use agent_rescue::AgentRescue;
pub use inspect::InspectInterface;
pub use rescue::RescueInterface;
