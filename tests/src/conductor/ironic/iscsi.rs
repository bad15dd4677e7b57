//! The initiator of an Ironic that writes to disks which agents export.
//!
//! Ironic calls `iscsiadm` and looks for a device that udev names. Here that program has the initiator of QEMU log in,
//! which needs nothing of the kernel, and shows the disk as a loop device on a file system of one file.

use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What Ironic calls, and what it calls that by to become root, which it is here.
const PROGRAMS: [(&str, &str); 2] = [
    ("iscsiadm", include_str!("iscsiadm.sh")),
    ("sudo", "#!/bin/sh\n# ironic-rootwrap FILE COMMAND...\nshift 2\nexec \"$@\"\n"),
];

/// The initiator. Dropping it ends its session.
#[derive(Debug)]
pub(super) struct Initiator {
    programs: PathBuf,
    portal_port: u16,
}

impl Initiator {
    /// One with its state in `folder`, for targets at this port.
    pub(super) fn new(folder: &Path, portal_port: u16) -> Result<Self> {
        let programs = folder.join("bin");
        fs::create_dir(&programs)?;
        for (name, text) in PROGRAMS {
            let file = programs.join(name);
            fs::write(&file, text)?;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755))
                .with_context(|| format!("{} cannot be made a program", file.display()))?;
        }
        Ok(Self { programs, portal_port })
    }

    /// The folder with its programs.
    pub(super) fn programs(&self) -> &Path {
        &self.programs
    }

    /// Arguments of QEMU for a card of the machine, whose portal is then at the loopback address.
    pub(super) fn network_arguments(&self) -> [String; 4] {
        let port = self.portal_port;
        let network = format!("user,id=portal,net=10.0.3.0/24,hostfwd=tcp:127.0.0.1:{port}-:{port}");
        ["-netdev".into(), network, "-device".into(), "virtio-net-pci,netdev=portal,romfile=".into()]
    }
}

impl Drop for Initiator {
    fn drop(&mut self) {
        let mut logout = Command::new(self.programs.join("iscsiadm"));
        logout.arg("--logout").stdin(Stdio::null()).stderr(Stdio::null()).status().ok();
    }
}
