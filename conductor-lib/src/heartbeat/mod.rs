//! Heartbeats (sections 2 and 8.3).
//!
//! A heartbeat passes three pure functions, which need nothing of this library but its model, so that a conductor with
//! a store of its own can use them alone: [`accept`] says whether it is the agent's and what is then known of the
//! agent, [`decide`] what it sets off, and [`SessionEnd::after`] when all of it is forgotten. [`fast_track`] says
//! whether an agent may stay between operations.

mod accept;
mod decide;
pub mod fast_track;
pub mod judge;
mod session_end;
mod situation;

pub use accept::no_token;
pub use accept::{Refusal, accept};
pub use decide::{Action, Maintenance, Situation, decide};
pub use session_end::SessionEnd;
pub use situation::situation;
