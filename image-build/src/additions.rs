//! What an operator adds to the ramdisk.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cpio::Archive;
use crate::error::BuildError;
use crate::executable::Target;
use crate::manifest::Addition;
use crate::packer::Packer;

/// Where the agent looks for certificates of authorities.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";
/// Where the SSH server looks for the keys of the user of a rescued machine.
const SSH_KEYS: &str = "root/.ssh/authorized_keys";
/// Where the agent looks for external hardware managers.
const HARDWARE_MANAGERS: &str = "usr/lib/farrier/hardware-managers.d";
/// Files beyond those that every ramdisk has.
#[derive(Debug, Clone, Default)]
pub struct Additions {
    /// Files and folders on the build machine, with their paths in the ramdisk.
    pub files: Vec<(PathBuf, String)>,
    /// Programs; each comes with the libraries it needs, under its own path.
    pub programs: Vec<PathBuf>,
    /// Folder below which programs come with their libraries; others have those of this machine.
    pub root: PathBuf,
    /// Certificates of authorities in PEM form.
    pub certificates: Vec<PathBuf>,
    /// Executables of external hardware managers.
    pub hardware_managers: Vec<PathBuf>,
    /// Public keys that may log in to a rescued machine.
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
        let mut packer = Packer::new(archive, target);
        for (source, path) in &self.files {
            let path = path.trim_matches('/');
            if source.is_dir() {
                packer.add_folder(source, path)?;
            } else {
                packer.add(source, path)?;
            }
        }
        for program in &self.programs {
            packer.add_program(self.root_of(program), program)?;
        }
        for manager in &self.hardware_managers {
            let name = manager.file_name().unwrap_or_default().to_string_lossy();
            packer.add_program_as(self.root_of(manager), manager, &format!("{HARDWARE_MANAGERS}/{name}"))?;
        }
        add_joined(
            &mut packer,
            &self.certificates,
            AUTHORITIES,
            0o644,
            is_certificate,
            "a certificate in PEM form",
        )?;
        add_joined(&mut packer, &self.ssh_keys, SSH_KEYS, 0o600, is_ssh_key, "a public SSH key")?;
        Ok(packer.added)
    }

    /// Where the libraries of a program are looked for.
    fn root_of(&self, program: &Path) -> &Path {
        if program.starts_with(&self.root) { &self.root } else { Path::new("/") }
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

/// Packs the text of several files as one, when there are any.
fn add_joined(
    packer: &mut Packer<'_>,
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
        packer.put(path, permissions, joined.into_bytes());
    }
    Ok(())
}

#[cfg(test)]
#[path = "additions_tests.rs"]
mod tests;
