//! What a conductor keeps of its nodes and tells of them.

mod diagnosis;
pub mod explain;
mod history;
mod metrics;
