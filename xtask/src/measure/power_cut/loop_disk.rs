//! A file as a disk with sectors of a size, for tools that read disks.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::host::command::{as_root, run_quietly};

/// A loop device; it goes when it is dropped.
pub struct LoopDisk {
    path: PathBuf,
    is_attached: bool,
}

impl LoopDisk {
    /// Makes one of a file.
    pub fn attach(file: &Path, sector_size: u32) -> Result<Self> {
        let size = format!("--sector-size={sector_size}");
        let path = run_quietly(as_root("losetup").args(["--find", "--show", &size]).arg(file))?;
        Ok(Self { path: path.trim().into(), is_attached: true })
    }

    /// The device.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it back, and everything written to the file.
    pub fn detach(mut self) -> Result<()> {
        run_quietly(as_root("blockdev").arg("--flushbufs").arg(&self.path))?;
        self.is_attached = false;
        run_quietly(as_root("losetup").arg("--detach").arg(&self.path)).map(drop)
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        if self.is_attached {
            run_quietly(as_root("losetup").arg("--detach").arg(&self.path)).ok();
        }
    }
}
