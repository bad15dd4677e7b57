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
#[cfg(feature = "drivers")]
pub mod deploy;
#[cfg(feature = "drivers")]
mod error;
#[cfg(feature = "drivers")]
pub mod hardware_type;
pub mod heartbeat;
#[cfg(feature = "drivers")]
pub mod in_band;
#[cfg(feature = "drivers")]
pub mod interfaces;
#[cfg(feature = "drivers")]
pub mod inventory;
pub mod model;
pub mod plan;
#[cfg(feature = "drivers")]
pub mod registry;
#[cfg(feature = "drivers")]
pub mod settings;
#[cfg(feature = "drivers")]
pub mod steps;
#[cfg(feature = "drivers")]
pub mod task;
#[cfg(feature = "client")]
pub mod untrusted;

#[cfg(feature = "drivers")]
pub use error::Error;
#[cfg(feature = "drivers")]
pub use hardware_type::HardwareType;
pub use model::PowerAction;
#[cfg(feature = "drivers")]
pub use registry::Drivers;
#[cfg(feature = "testing")]
pub use registry::testing;
#[cfg(feature = "drivers")]
pub use settings::Settings;
#[cfg(feature = "drivers")]
pub use task::{EventKind, Host, NetworkChange, Task};
