//! Ramdisks that hold more than the one which is built when nothing is asked for, as an operator makes them.

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

/// Builds the ramdisk with these additions below `folder`, and returns the folder with the kernel and it.
///
/// # Errors
///
/// What the builder says.
pub fn build(folder: &Path, additions: &[Addition<'_>]) -> Result<PathBuf> {
    let (dist, output) = (environment::path("FARRIER_DIST"), folder.join("dist"));
    let mut build = Command::new(environment::path("FARRIER_IMAGE_BUILDER"));
    build.arg("build").arg("--kernel").arg(dist.join("vmlinuz"));
    build.arg("--modules").arg(environment::path("FARRIER_MODULES"));
    build.arg("--programs-root").arg(environment::path("FARRIER_PROGRAMS"));
    build.arg("--cache").arg(environment::path("FARRIER_MODULE_CACHE"));
    build.arg("--agent").arg(dist.join("farrier-agent")).arg("--output").arg(&output);
    let sources = folder.join("additions");
    fs::create_dir_all(&sources)?;
    for (number, addition) in additions.iter().enumerate() {
        match *addition {
            Addition::Program(path) => build.args(["--program", path]),
            Addition::Module(name) => build.args(["--module", name]),
            Addition::File(path) => build.arg("--file").arg(format!("{path}:{path}")),
            Addition::Text(path, content) => {
                let source = sources.join(number.to_string());
                fs::write(&source, content)?;
                build.arg("--file").arg(format!("{}:{path}", source.display()))
            }
            Addition::HardwareManager(name, script) => {
                let source = sources.join(name);
                fs::write(&source, script)?;
                fs::set_permissions(&source, Permissions::from_mode(0o755))?;
                build.arg("--hardware-manager").arg(source)
            }
        };
    }
    let built = build.output().context("cannot start the builder")?;
    if !built.status.success() {
        bail!("{}", String::from_utf8_lossy(&built.stderr));
    }
    Ok(output)
}
