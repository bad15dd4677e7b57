//! A thin library for people who write a conductor: whatever drives agents that speak the Ironic Python Agent contract.
//!
//! Without features it has the records of nodes ([`model`]), the plans of their steps ([`plan`]), what heartbeats mean
//! ([`heartbeat`]) and what agents are known by ([`agent`]): pure functions and types, for a conductor with a store and a
//! server of its own. The feature `client` adds the client of agents; the feature `drivers` adds the [`interfaces`] that
//! drivers implement, [`HardwareType`]s that put them together, and the [`Task`] that deploys, cleans, inspects and
//! rescues with them, on what a conductor lends by [`Host`].
//!
//! The crate `farrier-engine` is a whole conductor on this library, with a store, workers and periodic tasks, and
//! `farrier-node-api` serves it by HTTP.
//!
//! Section numbers in the documentation refer to the conductor contract.

pub mod agent;
pub mod deploy;
mod error;
pub mod hardware_type;
pub mod heartbeat;
pub mod in_band;
pub mod interfaces;
pub mod inventory;
pub mod model;
pub mod plan;
pub mod registry;
pub mod settings;
pub mod steps;
pub mod task;
pub mod untrusted;

pub use error::Error;
pub use hardware_type::HardwareType;
pub use model::PowerAction;
pub use registry::Drivers;
pub use settings::Settings;
pub use task::{EventKind, Host, NetworkChange, Task};
