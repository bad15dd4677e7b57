//! Where a member of an array may be made.

use std::path::{Path, PathBuf};

/// A partition that was made for a member of an array. Its content has no owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberDevice(PathBuf);

impl MemberDevice {
    /// The partition with this device node; [`guard`](crate::guard) alone decides which may be one.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Path of the device node.
    pub fn path(&self) -> &Path {
        &self.0
    }
}
