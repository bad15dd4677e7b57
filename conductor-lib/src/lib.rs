//! A thin conductor: what drives agents that speak the Ironic Python Agent contract.
//!
//! [`Conductor`] keeps node records in a [`store::Store`], answers lookups and heartbeats, and
//! takes nodes through the direct deploy. Machines are controlled through
//! [`interfaces::PowerInterface`]; drivers implement it outside of this library.
//! [`api::ramdisk::ramdisk_router`] serves what agents call and can be mounted in any axum
//! application, [`api::nodes::nodes_router`] serves operators.
//!
//! Section numbers in the documentation refer to the conductor contract.

pub mod agent_client;
pub mod api;
mod conductor;
pub mod console;
pub mod deploy;
mod error;
pub mod events;
mod heartbeat;
pub mod interfaces;
mod locks;
mod lookup;
pub mod model;
mod services;
pub mod settings;
mod steps;
pub mod store;
mod task;
mod watch;

pub use conductor::{Conductor, PowerAction};
pub use error::Error;
pub use lookup::{LookupAnswer, LookupQuery};
pub use services::Drivers;
pub use settings::Settings;
