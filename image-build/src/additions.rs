//! What an operator adds to the ramdisk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cpio::Archive;
use crate::error::BuildError;
use crate::executable::{Executable, Target};
use crate::manifest::{Addition, FileRecord};

/// Where the agent looks for certificates of authorities.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";
/// Where the SSH server looks for the keys of root.
const SSH_KEYS: &str = "root/.ssh/authorized_keys";
/// Where the agent looks for external hardware managers.
const HARDWARE_MANAGERS: &str = "usr/lib/farrier/hardware-managers.d";
/// Where dynamic loaders look for libraries.
const LIBRARY_FOLDERS: &[&str] = &[
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "usr/lib64",
    "lib",
    "usr/lib",
];

/// Files beyond those that every ramdisk has.
#[derive(Debug, Clone, Default)]
pub struct Additions {
    /// Files on the build machine, with their paths in the ramdisk.
    pub files: Vec<(PathBuf, String)>,
    /// Programs; each comes with the libraries it needs, under its own path.
    pub programs: Vec<PathBuf>,
    /// Folder below which the programs and their libraries are installed.
    pub root: PathBuf,
    /// Certificates of authorities in PEM form.
    pub certificates: Vec<PathBuf>,
    /// Executables of external hardware managers.
    pub hardware_managers: Vec<PathBuf>,
    /// Public keys that may log in as root.
    pub ssh_keys: Vec<PathBuf>,
}

impl Additions {
    /// Adds all of it, and describes it for the manifest.
    ///
    /// # Errors
    ///
    /// [`BuildError::Read`] for what is missing, [`BuildError::Library`] for a program that would not
    /// start, [`BuildError::Architecture`], [`BuildError::Content`] for what is no certificate or key.
    pub fn add(&self, archive: &mut Archive, target: Target) -> Result<Vec<Addition>, BuildError> {
        let mut packer = Packer { archive, target, added: Vec::new() };
        for (source, path) in &self.files {
            packer.add(source, path.trim_start_matches('/'))?;
        }
        for program in &self.programs {
            packer.add_program(&self.root, program)?;
        }
        for manager in &self.hardware_managers {
            let name = manager.file_name().unwrap_or_default().to_string_lossy();
            packer.add_program_as(&self.root, manager, &format!("{HARDWARE_MANAGERS}/{name}"))?;
        }
        packer.add_joined(
            &self.certificates,
            AUTHORITIES,
            0o644,
            is_certificate,
            "a certificate in PEM form",
        )?;
        packer.add_joined(&self.ssh_keys, SSH_KEYS, 0o600, is_ssh_key, "a public SSH key")?;
        Ok(packer.added)
    }
}

fn is_certificate(text: &str) -> bool {
    text.contains("-----BEGIN CERTIFICATE-----") && text.contains("-----END CERTIFICATE-----")
}

fn is_ssh_key(text: &str) -> bool {
    let kinds = ["ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"];
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).peekable();
    lines.peek().is_some() && lines.all(|line| kinds.iter().any(|kind| line.contains(kind)))
}

struct Packer<'a> {
    archive: &'a mut Archive,
    target: Target<'a>,
    added: Vec<Addition>,
}

impl Packer<'_> {
    /// Packs one file as it is, executable if it was.
    fn add(&mut self, source: &Path, path: &str) -> Result<(), BuildError> {
        let content = fs::read(source).map_err(BuildError::reading(source))?;
        let mode = fs::metadata(source).map_err(BuildError::reading(source))?.permissions().mode();
        self.put(path, if mode & 0o111 == 0 { 0o644 } else { 0o755 }, content);
        Ok(())
    }

    fn put(&mut self, path: &str, permissions: u32, content: Vec<u8>) {
        self.added.push(Addition { path: path.to_owned(), file: FileRecord::of(&content) });
        self.archive.file(path, permissions, content);
    }

    /// Packs a program under the path that it has below `root`.
    fn add_program(&mut self, root: &Path, program: &Path) -> Result<(), BuildError> {
        let path = program.strip_prefix(root).unwrap_or(program).to_string_lossy().into_owned();
        self.add_program_as(root, program, path.trim_start_matches('/'))
    }

    /// Packs a program, its dynamic loader, and the libraries that these need, one after the other.
    fn add_program_as(&mut self, root: &Path, program: &Path, path: &str) -> Result<(), BuildError> {
        let mut pending = vec![(program.to_owned(), path.to_owned())];
        while let Some((source, path)) = pending.pop() {
            if self.added.iter().any(|addition| addition.path == path) {
                continue;
            }
            let content = fs::read(&source).map_err(BuildError::reading(&source))?;
            // A script is packed as it is; its interpreter is a program of its own.
            if !content.starts_with(b"#!") {
                let executable = Executable::parse(&source, &content)?;
                self.target.check(&source, executable.architecture)?;
                let loader = executable.loader.as_deref().map(|loader| loader.trim_start_matches('/'));
                pending.extend(loader.map(|loader| (root.join(loader), loader.to_owned())));
                for library in &executable.libraries {
                    pending.push(find_library(root, library, &source)?);
                }
            }
            self.put(&path, 0o755, content);
        }
        Ok(())
    }

    /// Packs the text of several files as one, when there are any.
    fn add_joined(
        &mut self,
        sources: &[PathBuf],
        path: &str,
        permissions: u32,
        is_valid: fn(&str) -> bool,
        expected: &'static str,
    ) -> Result<(), BuildError> {
        let mut joined = String::new();
        for source in sources {
            let content = fs::read(source).map_err(BuildError::reading(source))?;
            let text = String::from_utf8(content).unwrap_or_default();
            if !is_valid(&text) {
                return Err(BuildError::Content { path: source.clone(), expected });
            }
            joined += text.trim_end();
            joined.push('\n');
        }
        if !joined.is_empty() {
            self.put(path, permissions, joined.into_bytes());
        }
        Ok(())
    }
}

/// A library's file below `root`, and its path in the ramdisk.
fn find_library(root: &Path, name: &str, program: &Path) -> Result<(PathBuf, String), BuildError> {
    let paths = LIBRARY_FOLDERS.iter().map(|folder| format!("{folder}/{name}"));
    let mut found = paths.map(|path| (root.join(&path), path)).filter(|(file, _)| file.is_file());
    found.next().ok_or_else(|| BuildError::Library {
        program: program.to_owned(),
        library: name.to_owned(),
        root: root.to_owned(),
    })
}

#[cfg(test)]
#[path = "additions_tests.rs"]
mod tests;
