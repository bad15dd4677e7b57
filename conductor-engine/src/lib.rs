//! The engine of a conductor, on the thin library `farrier-conductor`.
//!
//! [`Conductor`] keeps node records in a [`store::Store`], answers lookups and heartbeats, and carries out the orders
//! of operators. Nothing runs within a request: an order is written down, a heartbeat too, and a worker for each node
//! that is not at rest does what follows from both, and continues where an earlier conductor stopped.
//!
//! ```
//! use farrier_conductor::testing::FakeMachine;
//! use farrier_conductor::{Drivers, Settings};
//! use farrier_engine::store::sqlite::SqliteStore;
//! use farrier_engine::{Conductor, Order};
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let store = Arc::new(SqliteStore::open(&folder.path().join("nodes.sqlite")).await?);
//! let drivers = FakeMachine::default().drivers(Drivers::default(), ["direct"]);
//! let conductor = Conductor::builder(Settings::new("http://192.0.2.1:6385"), store, drivers).start().await?;
//! let runs = conductor.clone();
//! tokio::spawn(async move { runs.run().await });
//!
//! let node = serde_json::json!({"name": "n1", "driver": "fake", "ports": ["52:54:00:00:00:01"]});
//! conductor.create_node(serde_json::from_value(node)?).await?;
//! conductor.order("n1", Order::Manage).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The crate `farrier-node-api` serves agents and operators by HTTP; this one has no server.
//!
//! Section numbers in the documentation refer to the conductor contract.

mod agent_liveness;
mod conductor;
pub mod error;
pub mod evidence;
pub mod explain;
mod lease;
mod limits;
mod operations;
mod periodic;
mod placement;
pub mod records;
pub mod request_context;
mod services;
pub mod store;
mod workers;

pub use agent_liveness::AgentLiveness;
pub use conductor::{
    Builder, Catalogue, Conductor, Figures, KeptEvidence, LookupAnswer, LookupQuery, Machines, Ramdisks,
};
pub use error::Error;
pub use evidence::{KeptLog, KeptLogError};
pub use limits::OperationFigures;
pub use placement::{KnownConductor, Unserved};
pub use records::Order;
pub use workers::WorkerFigures;
