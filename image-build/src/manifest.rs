//! `manifest.json`: what was built and from what.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::BuildError;
use crate::output::write_file;

/// Content of `manifest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// Version of Farrier.
    pub farrier_version: String,
    /// Architecture, in the kernel's spelling.
    pub architecture: String,
    /// Release of the kernel.
    pub kernel_release: String,
    /// Default kernel parameters.
    pub kernel_parameters: String,
    /// Written files by name.
    pub files: BTreeMap<String, FileRecord>,
    /// Helper programs in the ramdisk.
    pub programs: Vec<ProgramRecord>,
    /// Libraries of these programs.
    pub libraries: Vec<PackedFile>,
    /// What the operator added to the ramdisk.
    pub additions: Vec<Addition>,
    /// Firmware in the ramdisk.
    pub firmware: Vec<Addition>,
    /// Boot loaders in the media.
    pub boot_loaders: Vec<PackedFile>,
    /// Kernel modules in the ramdisk by name.
    pub modules: BTreeMap<String, ModuleRecord>,
    /// What was to be packed by name, and what became of it.
    pub selection: Vec<Selection>,
}

impl Manifest {
    /// Writes `manifest.json` into a folder.
    ///
    /// # Errors
    ///
    /// [`BuildError::Write`].
    pub fn write(&self, folder: &Path) -> Result<(), BuildError> {
        let path = folder.join("manifest.json");
        let text = serde_json::to_string_pretty(self)
            .map_err(io::Error::from)
            .map_err(BuildError::writing(&path))?;
        write_file(&path, format!("{text}\n").as_bytes())
    }

    /// Release of the kernel in a build that is described at `path`.
    ///
    /// # Errors
    ///
    /// [`BuildError::Read`], or [`BuildError::Manifest`] for what is no description.
    pub fn kernel_release(path: &Path) -> Result<String, BuildError> {
        #[derive(Deserialize)]
        struct Release {
            kernel_release: String,
        }
        let text = std::fs::read(path).map_err(BuildError::reading(path))?;
        let manifest: Release = serde_json::from_slice(&text)
            .map_err(|error| BuildError::Manifest { path: path.to_owned(), reason: error.to_string() })?;
        Ok(manifest.kernel_release)
    }
}

/// A file that was packed as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Addition {
    /// Path inside the ramdisk.
    pub path: String,
    /// Size and digest.
    #[serde(flatten)]
    pub file: FileRecord,
}

/// Size and digest of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileRecord {
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256, hexadecimal.
    pub sha256: String,
}

impl FileRecord {
    /// Measures `content`.
    pub fn of(content: &[u8]) -> Self {
        Self { bytes: content.len() as u64, sha256: hex::encode(Sha256::digest(content)) }
    }
}

/// A file out of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PackedFile {
    /// Path in the package.
    pub path: String,
    /// Debian package it comes from.
    pub package: String,
    /// Version of the package: always that of a program or library, that of a boot loader where its
    /// documentation is there.
    pub version: Option<String>,
    /// Licence of most of the package, if it is documented.
    pub license: Option<String>,
    /// Size and digest.
    #[serde(flatten)]
    pub file: FileRecord,
}

/// A helper program in the ramdisk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProgramRecord {
    /// Name.
    pub name: &'static str,
    /// The file and its package; the path is that inside the ramdisk.
    #[serde(flatten)]
    pub file: PackedFile,
}

/// A kernel module in the ramdisk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModuleRecord {
    /// Path below `/lib/modules/<release>`.
    pub path: String,
    /// Licence, in the kernel's words.
    pub license: String,
    /// Size and digest of the file as it is packed.
    #[serde(flatten)]
    pub file: FileRecord,
}

/// What became of the modules of one class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Selection {
    /// Name of the class.
    pub class: &'static str,
    /// Modules in the ramdisk, without what they depend on.
    pub packed: Vec<String>,
    /// Modules that are part of the kernel's own file.
    pub built_in: Vec<&'static str>,
    /// Modules that this kernel does not have.
    pub absent: Vec<&'static str>,
}

impl Selection {
    /// A class of which nothing is known yet.
    pub fn of(class: &'static str) -> Self {
        Self { class, ..Self::default() }
    }
}
