//! What can happen to a node in an operation.

use farrier_protocol::progress::Progress;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A moment in an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// The machine was powered on with the ramdisk.
    PowerOn,
    /// The agent called for the first time since then.
    FirstHeartbeat,
    /// The agent accepted the order to write the image.
    WriteStarted,
    /// How far it is.
    Progress(Progress),
    /// All bytes of the image are on the disk.
    ImageWritten,
    /// The agent proved that what is on the disk is the image.
    ImageVerified {
        /// Bytes and seconds of the phases, as the agent counted them.
        report: Option<Value>,
    },
    /// The firmware has a boot entry for the deployed system.
    BootEntry,
    /// The ramdisk powered the machine off.
    PoweredOff,
    /// The machine was powered on from its disk.
    Booting,
    /// The operation that failed was ordered again.
    Retried {
        /// The step that it goes on at; nothing when it begins anew, since the agent is gone.
        at: Option<String>,
    },
    /// The deployment succeeded.
    Active,
    /// The deployment failed.
    Failed {
        /// The node's `last_error`.
        error: String,
    },
}
