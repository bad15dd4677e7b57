//! A thin conductor: what drives agents that speak the Ironic Python Agent contract.
//!
//! [`Conductor`] keeps node records in a [`store::Store`], answers lookups and heartbeats, and
//! takes nodes through the direct deploy. Nothing runs within a request: an order is written down, a heartbeat too, and
//! a worker for each node that is not at rest does what follows from both, and goes on where an earlier conductor
//! stopped. Machines are controlled through [`interfaces`], which drivers implement outside of this library and
//! which [`HardwareType`]s put together.
//! The crate `farrier-node-api` serves agents and operators by HTTP; this one has no server.
//!
//! Three examples show how much or how little of it can be taken: `agent_alone`, `own_store` and `power_strip`.
//!
//! Section numbers in the documentation refer to the conductor contract.

pub mod agent;
mod agents;
pub mod caller;
pub mod clock;
mod conductor;
pub mod deploy;
pub mod disk_export;
mod error;
pub mod evidence;
pub mod explain;
pub mod foreign_json;
pub mod hardware_type;
pub mod heartbeat;
pub mod inspect;
pub mod interfaces;
pub mod log_extraction;
mod lookup;
mod mailbox;
pub mod model;
mod operations;
pub mod plan;
pub mod raid;
pub mod rescue;
mod services;
pub mod settings;
mod steps;
pub mod store;
mod task;

pub use agents::Agents;
pub use conductor::{Builder, Conductor};
pub use error::Error;
pub use evidence::{KeptLog, KeptLogError};
pub use hardware_type::HardwareType;
pub use lookup::{LookupAnswer, LookupQuery};
pub use model::PowerAction;
pub use settings::Settings;
pub use task::{NetworkChange, Task};
