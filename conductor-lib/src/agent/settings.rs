//! How a conductor talks to agents, and what it keeps of their logs.

use super::UserAgent;
use std::path::PathBuf;
use std::time::Duration;

/// When the logs of ramdisks are fetched (section 2.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogCollection {
    /// When an operation fails.
    #[default]
    OnFailure,
    /// When a deployment has come to its end, too.
    Always,
    /// Never.
    Never,
}

/// How a conductor talks to agents (conductor contract 4.1 to 4.3).
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// The name of the conductor in its requests.
    pub user_agent: UserAgent,
    /// Longest time for one request.
    pub command_timeout: Duration,
    /// Attempts per request when the agent cannot be reached, or cannot serve.
    pub max_command_attempts: u32,
    /// Mean pause between two attempts.
    pub command_retry_pause: Duration,
    /// Interval between checks of a command whose result is needed at once.
    pub command_wait_attempts: u32,
    /// Pause between two looks.
    pub command_wait_interval: Duration,
    /// Refuses agents that do not serve HTTPS.
    pub require_tls: bool,
    /// When the logs of ramdisks are fetched.
    pub deploy_logs_collect: LogCollection,
    /// The folder that they are kept in; without one they are not fetched.
    pub deploy_logs_local_path: Option<PathBuf>,
    /// How much of them is kept there, the newest.
    pub deploy_logs_room: LogRoom,
}

/// How much is kept of the logs of ramdisks and the pictures of screens. Beyond that the oldest ones are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRoom {
    /// Files of one node.
    pub files_per_node: usize,
    /// Bytes of one node.
    pub bytes_per_node: u64,
    /// Files of all nodes.
    pub files: usize,
    /// Bytes of all nodes.
    pub bytes: u64,
}

impl Default for LogRoom {
    fn default() -> Self {
        Self { files_per_node: 20, bytes_per_node: 128 << 20, files: 10_000, bytes: 2 << 30 }
    }
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            user_agent: UserAgent::default(),
            command_timeout: Duration::from_secs(60),
            max_command_attempts: 3,
            command_retry_pause: Duration::from_secs(1),
            command_wait_attempts: 600,
            command_wait_interval: Duration::from_secs(1),
            require_tls: true,
            deploy_logs_collect: LogCollection::default(),
            deploy_logs_local_path: None,
            deploy_logs_room: LogRoom::default(),
        }
    }
}
