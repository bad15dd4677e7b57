//! Versions of what runs on a machine beside its operating system.

/// The version of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirmwareVersion {
    /// Of what: `bios`, `bmc`.
    pub component: String,
    /// What its maker calls it.
    pub version: String,
}
