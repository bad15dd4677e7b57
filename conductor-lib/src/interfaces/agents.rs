//! What interfaces may know of the agents of nodes that get a node and no task.

use super::base::InterfaceError;
use crate::model::{BadValue, Node};
use async_trait::async_trait;
use std::time::Duration;

/// The agents of all nodes, as far as their calls say.
#[async_trait]
pub trait Agents: Send + Sync {
    /// Whether fast track is on for a node: by its `driver_info`, else by the conductor's setting (section 2.3).
    ///
    /// # Errors
    ///
    /// [`BadValue`] where `driver_info` has something else than a boolean.
    fn has_fast_track(&self, node: &Node) -> Result<bool, BadValue>;

    /// Whether the agent of a node was heard of within [`Self::window`]. In states that take no heartbeats its silence
    /// proves nothing, and it is asked.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::Driver`] where the records cannot be read.
    async fn is_alive(&self, node: &Node) -> Result<bool, InterfaceError>;

    /// How long an agent counts as alive after it was heard of.
    fn window(&self) -> Duration;
}
