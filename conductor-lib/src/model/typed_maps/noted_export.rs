//! The note of a disk that an operator has had exported.

use serde::{Deserialize, Serialize};
use std::fmt;
use time::OffsetDateTime;

/// A disk that the agent of a node exports by hand. While this is noted nothing else becomes of the node, and it ends
/// with the agent's session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotedExport {
    /// Name of the iSCSI target.
    pub target: String,
    /// Where it listens.
    pub portal: String,
    /// When it was ordered.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
}

impl fmt::Display for NotedExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.target, self.portal)
    }
}
