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
//! | You write | implement or call | feature |
//! |---|---|---|
//! | a conductor with records of its own | [`heartbeat::accept`], [`heartbeat::next`], [`heartbeat::SessionEnd::after`] | none |
//! | the same, and it commands agents | [`agent::AgentClient`](crate::agent) | `client` |
//! | a driver of machines | [`interfaces::PowerInterface`](crate::interfaces) and its siblings | `drivers` |
//! | a way to deploy | [`deploy::AgentDeploy`](crate::deploy), or [`deploy::DeployInterface`](crate::deploy) without an agent | `drivers` |
//! | tests of a driver | [`testing`]: a host in memory, a fake machine, a scripted agent | `testing` |
//!
//! ```
//! use farrier_conductor::heartbeat::{Next, Situation, accept, next};
//! use farrier_conductor::model::{AgentSession, ProvisionState, StepKind};
//! use farrier_protocol::heartbeat::Heartbeat;
//! use time::OffsetDateTime;
//!
//! // The lookup gave the agent its token; its first heartbeat brings the token back.
//! let session = AgentSession { agent_secret_token: Some("s3cret".into()), ..AgentSession::default() };
//! let heartbeat = Heartbeat {
//!     callback_url: "https://192.0.2.20:9999".into(),
//!     agent_token: Some("s3cret".into()),
//!     agent_version: Some("0.1.0".into()),
//!     ..Heartbeat::default()
//! };
//! let session = accept(&session, &heartbeat, true, OffsetDateTime::now_utc())?;
//! assert_eq!(session.agent_url.as_deref(), Some("https://192.0.2.20:9999"));
//! // The machine waits for a cleaning: now its steps are listed, and the first one begins.
//! let sets_off = next(&Situation::of(ProvisionState::CleanWait), None);
//! assert_eq!(sets_off, Next::Begin(StepKind::Clean));
//! # Ok::<(), farrier_conductor::heartbeat::Refusal>(())
//! ```
//!
//! Section numbers in the documentation refer to the conductor contract.

pub mod agent;
#[cfg(feature = "drivers")]
pub mod deploy;
#[cfg(feature = "drivers")]
pub mod error;
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
