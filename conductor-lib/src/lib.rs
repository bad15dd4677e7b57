//! A thin conductor: what drives agents that speak the Ironic Python Agent contract.
//!
//! [`Conductor`] keeps node records in a [`store::Store`], answers lookups and heartbeats, and
//! takes nodes through the direct deploy. Nothing runs within a request: an order is written down, a heartbeat too, and
//! a worker for each node that is not at rest does what follows from both, and goes on where an earlier conductor
//! stopped. Machines are controlled through [`interfaces`], which drivers implement outside of this library and
//! which [`HardwareType`]s put together.
//! [`api::ramdisk::ramdisk_router`] serves what agents call and can be mounted in any axum
//! application, [`api::nodes::nodes_router`] serves operators, behind [`api::authorization`].
//!
//! Three examples show how much or how little of it can be taken: `agent_alone`, `own_store` and `power_strip`.
//!
//! Section numbers in the documentation refer to the conductor contract.

pub mod agent_client;
mod agent_steps;
mod agent_token;
mod agent_trust;
mod agents;
pub mod api;
pub mod attention;
pub mod boot_trace;
pub mod caller;
pub mod clock;
mod conductor;
pub mod console;
pub mod deploy;
pub mod disk_export;
pub mod erasing;
mod error;
pub mod events;
pub mod explanation;
pub mod foreign_json;
pub mod hardware_type;
pub mod heartbeat;
pub mod inspect;
pub mod interfaces;
mod kept_logs;
pub mod last_words;
mod log_extraction;
mod lookup;
mod mailbox;
pub mod model;
mod operations;
pub mod plan;
mod power_reading;
pub mod raid;
mod ramdisk;
mod ramdisk_logs;
pub mod rescue;
mod screenshot;
mod services;
pub mod settings;
mod steps;
pub mod store;
mod task;

pub use agents::Agents;
pub use conductor::{Builder, Conductor};
pub use error::Error;
pub use hardware_type::HardwareType;
pub use kept_logs::{KeptLog, KeptLogError};
pub use lookup::{LookupAnswer, LookupQuery};
pub use model::PowerAction;
pub use settings::Settings;
pub use task::{NetworkChange, Task};
