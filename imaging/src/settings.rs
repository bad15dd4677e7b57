//! The settings of a write, and its report.

use crate::checksum::Trust;
use crate::format::Policy;
use crate::readback::Verify;
use serde::Serialize;

/// What the operator decides about images (section 3.3).
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Which formats may be written.
    pub policy: Policy,
    /// How much is read back (`farrier-verify`).
    pub verify: Verify,
    /// Which digests are believed.
    pub trust: Trust,
}

/// What a write achieved.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Bytes received.
    pub bytes_read: u64,
    /// Bytes transferred to the disk.
    pub bytes_written: u64,
    /// Bytes that the disk made zero on command.
    pub bytes_zeroed: u64,
    /// Bytes read back and compared.
    pub bytes_verified: u64,
    /// Seconds from the request to the proven digest, the last attempt only.
    pub seconds_write: f64,
    /// Seconds of flushing, and of writing the ends of the disk.
    pub seconds_commit: f64,
    /// Seconds of reading back.
    pub seconds_verify: f64,
}
