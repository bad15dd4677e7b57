//! Mounting the kernel's own file systems.

use nix::mount::{MsFlags, mount};
use std::fs;
use std::io;
use std::path::Path;

/// A file system that a running system expects.
#[derive(Debug, Clone, Copy)]
pub struct KernelMount {
    /// File system type.
    pub kind: &'static str,
    /// Where it goes.
    pub target: &'static str,
    /// Mount options as text.
    pub options: &'static str,
}

/// What PID 1 mounts before anything else, in order. `efivarfs` comes later: it is a module.
pub const EARLY: &[KernelMount] = &[
    KernelMount { kind: "proc", target: "/proc", options: "" },
    KernelMount { kind: "sysfs", target: "/sys", options: "" },
    KernelMount { kind: "devtmpfs", target: "/dev", options: "mode=0755" },
    KernelMount { kind: "tmpfs", target: "/run", options: "mode=0755,size=16m" },
    KernelMount { kind: "tmpfs", target: "/tmp", options: "mode=1777,size=16m" },
];

/// The UEFI variables.
pub const EFIVARFS: KernelMount =
    KernelMount { kind: "efivarfs", target: "/sys/firmware/efi/efivars", options: "" };

/// A file system could not be mounted.
#[derive(Debug, thiserror::Error)]
#[error("{kind} cannot be mounted on {target}: is it built into the kernel or packed as a module?")]
pub struct MountError {
    kind: &'static str,
    target: &'static str,
    #[source]
    source: io::Error,
}

impl KernelMount {
    /// Mounts it, creating the directory. Something already mounted there counts as success.
    ///
    /// # Errors
    ///
    /// [`MountError`] naming type and target.
    pub fn mount(&self) -> Result<(), MountError> {
        self.try_mount().map_err(|source| MountError { kind: self.kind, target: self.target, source })
    }

    fn try_mount(&self) -> io::Result<()> {
        let target = Path::new(self.target);
        if !target.is_dir() {
            fs::create_dir_all(target)?;
        }
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
        match mount(Some(self.kind), target, Some(self.kind), flags, Some(self.options)) {
            Ok(()) | Err(nix::errno::Errno::EBUSY) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
