//! Agents: the client that asks one and gives it commands, its token and its certificate.

#[cfg(feature = "client")]
mod certificate;
#[cfg(feature = "client")]
mod client;
mod failure;
mod settings;
pub mod token;
mod user_agent;

#[cfg(feature = "client")]
pub use client::{AgentClient, AgentError, Wait};
pub use failure::failure_text;
pub use settings::{AgentSettings, LogCollection, LogRoom};
pub use user_agent::UserAgent;
