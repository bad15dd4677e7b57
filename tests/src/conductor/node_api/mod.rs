//! Nodes over Ironic's REST interface, whoever serves it.

mod api;
mod enrolment;
mod node;

pub use api::Api;
pub use enrolment::{Control, Enrolment};
pub use node::{Instance, Node, Order};

use std::fmt;

/// Whoever leads nodes.
pub trait Conductor: fmt::Debug {
    /// Its interface for operators.
    fn api(&self) -> &Api;

    /// The last lines of its log.
    fn log_tail(&self) -> String;
}
