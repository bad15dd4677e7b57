//! Wire types shared by the agent and the conductor.
//!
//! The contract is that of the Ironic Python Agent: what an unmodified Ironic sends and expects.
//! This crate has the types, and the [codes](error_code) of errors: no I/O, no policy. Section numbers in the
//! documentation refer to the agent contract unless another document is named.

pub mod command;
pub mod doctor;
pub mod error;
pub mod error_code;
pub mod heartbeat;
pub mod hints;
pub mod image_info;
pub mod inventory;
pub mod json;
pub mod lookup;
pub mod progress;
pub mod step;
