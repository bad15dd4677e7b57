//! Progress of the command that is running, served beside `/v1/status`.
//!
//! This is Farrier's own addition to the contract: conductors that do not know it lose nothing.

use serde::{Deserialize, Serialize};

/// What an image deployment is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Nothing is being written.
    #[default]
    Idle,
    /// Bytes travel from the server to the disk.
    Writing,
    /// What reached the disk is read back and compared.
    Verifying,
    /// The first MiB, the config drive and the partition table are put in place.
    Finishing,
    /// The image is on the disk and proven.
    Done,
    /// The last deployment failed.
    Failed,
}

/// Body of `GET /v1/progress`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// What is being done.
    pub phase: Phase,
    /// Bytes done in this phase.
    pub bytes: u64,
    /// Bytes expected in this phase, where known.
    pub total_bytes: Option<u64>,
    /// Bytes per second over the phase so far.
    pub bytes_per_second: u64,
    /// Seconds until the phase ends at this rate, where they are known.
    pub eta_seconds: Option<u64>,
    /// Seconds until a server that failed, or asked to be left alone, is asked again; nothing while none is waited
    /// for.
    #[serde(default)]
    pub retry_in_seconds: Option<u64>,
}
