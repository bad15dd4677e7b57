//! What an agent states when it has erased disks: of each disk, and of the machine as a whole.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What an agent states of a disk or of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Statement {
    /// All disks that the agent examined, and what it could not see.
    Machine(MachineStatement),
    /// What became of one disk.
    Disk(DiskStatement),
}

/// What became of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The disk was erased, and that is proven.
    Erased,
    /// Nothing but partition tables and signatures was removed: the data are still there.
    MetadataRemoved,
    /// The disk was not to be erased.
    Kept,
    /// The disk was not erased.
    Failed,
}

/// What an agent states of a disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskStatement {
    pub(super) version: u32,
    /// Identity of the node.
    pub node: String,
    /// Name of the step.
    pub step: String,
    /// The nonce that the conductor issued for this run of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// Path of the device in the ramdisk.
    pub device: String,
    /// Serial number.
    pub serial: Option<String>,
    /// World Wide Name.
    #[serde(default)]
    pub wwn: Option<String>,
    /// Size.
    #[serde(default)]
    pub size_bytes: u64,
    /// What became of it.
    pub verdict: Verdict,
    /// What erased it.
    pub method: Option<String>,
    /// Why it was kept, or failed.
    #[serde(default)]
    pub reason: Option<String>,
    /// When its erasure ended, by the clock of the agent.
    pub finished_at: String,
    /// Everything else that it says.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// What an agent states of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineStatement {
    pub(super) version: u32,
    /// Identity of the node.
    pub node: String,
    /// Name of the step.
    pub step: String,
    /// The nonce that the conductor issued for this run of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// Every disk that the agent examined.
    pub disks: Vec<ExaminedDisk>,
    /// Storage that holds data as a disk does and that no block device shows, in words.
    #[serde(default)]
    pub not_seen: Vec<String>,
    /// Storage that no erase step is about, such as tapes and spares of a hardware RAID, in words.
    pub not_examined: Vec<String>,
    /// Storage controllers without a driver in the ramdisk, in words.
    pub without_driver: Vec<String>,
    /// When the step ended, by the clock of the agent.
    pub finished_at: String,
    /// Everything else that it says.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// A disk in the statement for a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExaminedDisk {
    /// Path of the device in the ramdisk.
    pub device: String,
    /// Serial number.
    pub serial: Option<String>,
    /// World Wide Name.
    #[serde(default)]
    pub wwn: Option<String>,
    /// Size.
    #[serde(default)]
    pub size_bytes: u64,
    /// What became of it.
    pub verdict: Verdict,
    /// Everything else that it says.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

impl Statement {
    /// Version of the format.
    pub(super) fn version(&self) -> u32 {
        match self {
            Self::Machine(machine) => machine.version,
            Self::Disk(disk) => disk.version,
        }
    }

    /// Identity of the node.
    pub fn node(&self) -> &str {
        match self {
            Self::Machine(machine) => &machine.node,
            Self::Disk(disk) => &disk.node,
        }
    }

    /// Name of the step.
    pub fn step(&self) -> &str {
        match self {
            Self::Machine(machine) => &machine.step,
            Self::Disk(disk) => &disk.step,
        }
    }

    /// When what it states ended, by the clock of the agent.
    pub fn finished_at(&self) -> &str {
        match self {
            Self::Machine(machine) => &machine.finished_at,
            Self::Disk(disk) => &disk.finished_at,
        }
    }

    /// The nonce of the run of the step that it states.
    pub(super) fn nonce(&self) -> Option<&str> {
        match self {
            Self::Machine(machine) => machine.nonce.as_deref(),
            Self::Disk(disk) => disk.nonce.as_deref(),
        }
    }
}
