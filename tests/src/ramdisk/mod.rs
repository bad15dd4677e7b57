//! Ramdisks that hold more than the one which is built when nothing is asked for, as an operator makes them.

pub mod killer;
pub mod witness;

use crate::environment;
use anyhow::{Context, Result, bail};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Something that is put into a ramdisk.
#[derive(Debug, Clone, Copy)]
pub enum Addition<'a> {
    /// A program of `FARRIER_PROGRAMS`, by its path, with all it needs.
    Program(&'a str),
    /// A module of the kernel, by its name.
    Module(&'a str),
    /// A file of this computer, at the same path.
    File(&'a str),
    /// A file at this path with this content.
    Text(&'a str, &'a str),
    /// A hardware manager with this name: a script.
    HardwareManager(&'a str, &'a str),
}

/// What ramdisks are made of.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The builder.
    pub builder: PathBuf,
    /// Folder with the kernel and the agent.
    pub dist: PathBuf,
    /// The modules of the kernel.
    pub modules: PathBuf,
    /// Where programs are, before those of this computer.
    pub programs: PathBuf,
    /// Where the builder keeps packed modules.
    pub module_cache: PathBuf,
}

/// Builds the ramdisk of the tests' environment with these additions below `folder`, and returns the folder with the
/// kernel and it.
///
/// # Errors
///
/// What the builder says.
pub fn build(folder: &Path, additions: &[Addition<'_>]) -> Result<PathBuf> {
    let parts = Parts {
        builder: environment::path("FARRIER_IMAGE_BUILDER"),
        dist: environment::path("FARRIER_DIST"),
        modules: environment::path("FARRIER_MODULES"),
        programs: environment::path("FARRIER_PROGRAMS"),
        module_cache: environment::path("FARRIER_MODULE_CACHE"),
    };
    parts.build(folder, additions)
}

impl Parts {
    /// As [`build`], of these parts.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn build(&self, folder: &Path, additions: &[Addition<'_>]) -> Result<PathBuf> {
        let output = folder.join("dist");
        let mut build = Command::new(&self.builder);
        build.arg("build").arg("--kernel").arg(self.dist.join("vmlinuz"));
        build.arg("--modules").arg(&self.modules);
        build.arg("--programs-root").arg(&self.programs);
        build.arg("--cache").arg(&self.module_cache);
        build.arg("--agent").arg(self.dist.join("farrier-agent")).arg("--output").arg(&output);
        let sources = folder.join("additions");
        fs::create_dir_all(&sources)?;
        for (number, addition) in additions.iter().enumerate() {
            addition.ask(&mut build, &sources, number)?;
        }
        let built = build.output().context("cannot start the builder")?;
        if !built.status.success() {
            bail!("{}", String::from_utf8_lossy(&built.stderr));
        }
        Ok(output)
    }
}

impl Addition<'_> {
    /// Has `build` ask for it; what it is made of is put into the folder `sources`.
    fn ask(&self, build: &mut Command, sources: &Path, number: usize) -> Result<()> {
        match *self {
            Self::Program(path) => build.args(["--program", path]),
            Self::Module(name) => build.args(["--module", name]),
            Self::File(path) => build.arg("--file").arg(format!("{path}:{path}")),
            Self::Text(path, content) => {
                let source = sources.join(number.to_string());
                fs::write(&source, content)?;
                build.arg("--file").arg(format!("{}:{path}", source.display()))
            }
            Self::HardwareManager(name, script) => {
                let source = sources.join(name);
                fs::write(&source, script)?;
                fs::set_permissions(&source, Permissions::from_mode(0o755))?;
                build.arg("--hardware-manager").arg(source)
            }
        };
        Ok(())
    }
}
