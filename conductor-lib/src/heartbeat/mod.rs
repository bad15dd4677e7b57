//! Heartbeats (sections 2 and 8.3).
//!
//! A heartbeat passes three pure functions, which need nothing of this library but its model, so that a conductor with
//! a store of its own can use them alone: [`accept`] says whether it is the agent's and what is then known of the
//! agent, [`next`] what it sets off and what the agent's command list says about the current step, and
//! [`SessionEnd::after`] when all of it is forgotten. [`fast_track`] says whether an agent may stay between operations.

mod accept;
pub mod fast_track;
pub(crate) mod judge;
mod next;
mod session_end;
mod situation;

pub use accept::no_token;
pub use accept::{Refusal, accept};
pub use judge::Verdict;
pub use next::{Next, next};
pub use session_end::SessionEnd;
pub use situation::{Maintenance, Situation, situation};
