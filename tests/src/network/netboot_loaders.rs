//! What machines of each architecture load from the network before their kernel.

use anyhow::{Context, Result, ensure};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What every GRUB needs that loads by HTTP, or goes on with a disk.
/// Kernels of aarch64 are packed with gzip.
const MODULES: [&str; 18] = [
    "efinet",
    "http",
    "gzio",
    "tftp",
    "net",
    "normal",
    "configfile",
    "linux",
    "echo",
    "sleep",
    "test",
    "reboot",
    "boot",
    "part_gpt",
    "part_msdos",
    "fat",
    "chain",
    "regexp",
];

/// iPXE of a newer Debian: for aarch64, which older ones have not, and the one with drivers of its own.
const NEWER_IPXE: [&str; 2] = ["ipxe-arm64.efi", "ipxe.efi"];

/// The architecture of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Architecture {
    /// That of PCs.
    X86_64,
    /// That of Arm with 64 bits.
    Aarch64,
}

/// What a machine boots.
#[derive(Debug, Clone)]
pub struct Bootable {
    /// Folder with `vmlinuz` and `initramfs.img`.
    pub dist: PathBuf,
    /// Where packages with its boot loaders are unpacked; nowhere, where they are installed.
    pub loaders: Vec<PathBuf>,
}

impl Architecture {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// Its name, as Ironic spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// What kernels of emulated machines are told, by which they are heard.
    pub fn kernel_parameters(self) -> &'static str {
        match self {
            Self::X86_64 => "console=ttyS0 no_timer_check",
            Self::Aarch64 => "console=ttyAMA0",
        }
    }

    /// What names of EFI programs end with.
    fn suffix(self) -> &'static str {
        match self {
            Self::X86_64 => "x64",
            Self::Aarch64 => "aa64",
        }
    }

    /// What GRUB calls it.
    fn platform(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-efi",
            Self::Aarch64 => "arm64-efi",
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Bootable {
    /// The loaders of a boot interface that a conductor does not find by itself, as `--loader-file-paths` takes them.
    /// What is made for this run is in `folder`.
    ///
    /// # Errors
    ///
    /// GRUB cannot be made.
    pub fn loader_file_paths(
        &self,
        architecture: Architecture,
        method: &str,
        folder: &Path,
    ) -> Result<Vec<String>> {
        let (suffix, platform) = (architecture.suffix(), architecture.platform());
        let shim = format!("usr/lib/shim/shim{suffix}.efi.signed");
        let grub = format!("usr/lib/grub/{platform}-signed/grubnet{suffix}.efi.signed");
        let unpacked = |file: &str| self.unpacked(file);
        let grub = match method {
            "http" => Some(self.grub_with_http(architecture, folder)?),
            _ => unpacked(&grub),
        };
        let named = |stem: &str, file: PathBuf| format!("{stem}{suffix}.efi:{}", file.display());
        let shim = unpacked(&shim).map(|file| named("boot", file));
        let ipxe = NEWER_IPXE.into_iter().filter_map(|name| {
            let file = unpacked(&format!("usr/lib/ipxe/{name}"))?;
            Some(format!("{name}:{}", file.display()))
        });
        Ok(shim.into_iter().chain(grub.map(|file| named("grub", file))).chain(ipxe).collect())
    }

    fn unpacked(&self, file: &str) -> Option<PathBuf> {
        self.loaders.iter().map(|root| root.join(file)).find(|file| file.exists())
    }

    /// A GRUB that can load by HTTP, since the one that Debian signs cannot: made as the book tells operators to.
    fn grub_with_http(&self, architecture: Architecture, folder: &Path) -> Result<PathBuf> {
        let file = folder.join("grub-http.efi");
        let platform = architecture.platform();
        let mut make = Command::new("grub-mkimage");
        make.args(["-O", platform, "-p", "/grub", "-o"]).arg(&file);
        if let Some(modules) = self.unpacked(&format!("usr/lib/grub/{platform}")) {
            make.arg("-d").arg(modules);
        }
        let output = make.args(MODULES).output().context("cannot start grub-mkimage")?;
        ensure!(output.status.success(), "grub-mkimage: {}", String::from_utf8_lossy(&output.stderr));
        Ok(file)
    }
}
