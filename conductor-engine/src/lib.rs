//! The engine of a conductor, on the thin library `farrier-conductor`.
//!
//! [`Conductor`] keeps node records in a [`store::Store`], answers lookups and heartbeats, and carries out the orders of
//! operators. Nothing runs within a request: an order is written down, a heartbeat too, and a worker for each node that is
//! not at rest does what follows from both, and goes on where an earlier conductor stopped.
//!
//! The crate `farrier-node-api` serves agents and operators by HTTP; this one has no server.
//!
//! Section numbers in the documentation refer to the conductor contract.

mod agent_liveness;
mod conductor;
mod error;
pub mod evidence;
pub mod explain;
mod lease;
mod operations;
mod periodic;
pub mod records;
pub mod request_context;
mod services;
pub mod store;
mod workers;

pub use agent_liveness::AgentLiveness;
pub use conductor::{
    Builder, Catalogue, Conductor, KeptEvidence, LookupAnswer, LookupQuery, Machines, Ramdisks,
};
pub use error::Error;
pub use evidence::{KeptLog, KeptLogError};
pub use records::Order;
