//! Agents: the client that asks one and gives it commands, its token and its certificate.

mod certificate;
mod client;
mod failure;
pub(crate) mod token;

pub use client::{AgentClient, AgentError, Wait};
pub(crate) use failure::failure_text;
