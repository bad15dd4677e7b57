//! Agents: the client that asks one and gives it commands, its token and its certificate.

mod certificate;
mod client;
mod failure;
pub mod token;

pub use client::{AgentClient, AgentError, Wait};
pub use failure::failure_text;
