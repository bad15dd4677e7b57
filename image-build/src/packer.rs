//! Puts files and programs into the ramdisk, programs with the libraries they need.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cpio::Archive;
use crate::error::BuildError;
use crate::executable::{Executable, Target};
use crate::manifest::{Addition, FileRecord};

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

/// The ramdisk, and what was put into it.
pub struct Packer<'a> {
    archive: &'a mut Archive,
    target: Target<'a>,
    /// Every file that was packed, once.
    pub added: Vec<Addition>,
}

impl<'a> Packer<'a> {
    /// Puts files for machines like `target` into `archive`.
    pub fn new(archive: &'a mut Archive, target: Target<'a>) -> Self {
        Self { archive, target, added: Vec::new() }
    }

    /// Packs one file as it is, executable if it was.
    ///
    /// # Errors
    ///
    /// [`BuildError::Read`].
    pub fn add(&mut self, source: &Path, path: &str) -> Result<(), BuildError> {
        let content = fs::read(source).map_err(BuildError::reading(source))?;
        let mode = fs::metadata(source).map_err(BuildError::reading(source))?.permissions().mode();
        self.put(path, if mode & 0o111 == 0 { 0o644 } else { 0o755 }, content);
        Ok(())
    }

    /// Packs a folder with all that is in it, in the order of the names, so that builds repeat. What links
    /// point at is packed in their place.
    ///
    /// # Errors
    ///
    /// [`BuildError::Read`].
    pub fn add_folder(&mut self, source: &Path, path: &str) -> Result<(), BuildError> {
        let entries = fs::read_dir(source).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = entries.map_err(BuildError::reading(source))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (source, path) = (entry.path(), format!("{path}/{}", entry.file_name().to_string_lossy()));
            if source.is_dir() {
                self.add_folder(&source, &path)?;
            } else {
                self.add(&source, &path)?;
            }
        }
        Ok(())
    }

    /// Packs `content` under `path`.
    pub fn put(&mut self, path: &str, permissions: u32, content: Vec<u8>) {
        self.added.push(Addition { path: path.to_owned(), file: FileRecord::of(&content) });
        self.archive.file(path, permissions, content);
    }

    /// Packs a program under the path that it has below `root`.
    ///
    /// # Errors
    ///
    /// As [`Packer::add_program_as`].
    pub fn add_program(&mut self, root: &Path, program: &Path) -> Result<(), BuildError> {
        let path = program.strip_prefix(root).unwrap_or(program).to_string_lossy().into_owned();
        self.add_program_as(root, program, path.trim_start_matches('/'))
    }

    /// Packs a program, its dynamic loader, and the libraries that these need, one after the other. What is in
    /// the ramdisk already stays as it is.
    ///
    /// # Errors
    ///
    /// [`BuildError::Read`], [`BuildError::Elf`], [`BuildError::Architecture`], and
    /// [`BuildError::Library`] for a program that would not start.
    pub fn add_program_as(&mut self, root: &Path, program: &Path, path: &str) -> Result<(), BuildError> {
        let mut pending = vec![(program.to_owned(), path.to_owned())];
        while let Some((source, path)) = pending.pop() {
            if self.archive.contains(&path) {
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
                    pending.push(find_library(root, library, &executable, &source)?);
                }
            }
            self.put(&path, 0o755, content);
        }
        Ok(())
    }
}

/// A library's file below `root`, and its path in the ramdisk.
fn find_library(
    root: &Path,
    name: &str,
    of: &Executable,
    program: &Path,
) -> Result<(PathBuf, String), BuildError> {
    let own = of.run_path.iter().map(|folder| folder.trim_matches('/'));
    let paths = own.chain(LIBRARY_FOLDERS.iter().copied()).map(|folder| format!("{folder}/{name}"));
    let mut found = paths.map(|path| (root.join(&path), path)).filter(|(file, _)| file.is_file());
    found.next().ok_or_else(|| BuildError::Library {
        program: program.to_owned(),
        library: name.to_owned(),
        root: root.to_owned(),
    })
}
