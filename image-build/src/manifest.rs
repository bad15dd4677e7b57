//! `manifest.json`: what was built and from what.

use std::collections::BTreeMap;

use serde::Serialize;
use sha2::{Digest, Sha256};

/// Content of `manifest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// Version of Farrier.
    pub farrier_version: &'static str,
    /// Architecture, in the kernel's spelling.
    pub architecture: &'static str,
    /// Release of the kernel.
    pub kernel_release: String,
    /// Written files by name.
    pub files: BTreeMap<&'static str, FileRecord>,
    /// Helper programs in the ramdisk.
    pub programs: Vec<ProgramRecord>,
    /// Kernel modules in the ramdisk by name.
    pub modules: BTreeMap<String, ModuleRecord>,
    /// What was to be packed by name, and what became of it.
    pub selection: Vec<Selection>,
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

/// A helper program in the ramdisk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProgramRecord {
    /// Name.
    pub name: &'static str,
    /// Path inside the ramdisk.
    pub path: &'static str,
    /// Debian package it comes from.
    pub package: &'static str,
    /// Size and digest.
    #[serde(flatten)]
    pub file: FileRecord,
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
