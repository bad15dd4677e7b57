//! A ramdisk with a hardware manager in Python, built as its author would.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::debian_packages::Packages;
use super::dist::{self, Dist};
use crate::host::command::{command, run};
use crate::host::workspace::Workspace;

const PYTHON: &str = "/usr/bin/python3";
/// Where Debian's Python looks for packages beside its own.
const PYTHON_PACKAGES: &str = "/usr/lib/python3/dist-packages";

/// Adds the example of a manager in Python, and this machine's Python, to the ramdisk of `dist`. Gives the
/// folder of the new one.
pub fn ramdisk(workspace: &Workspace, dist: &Dist) -> Result<PathBuf> {
    let python = fs::canonicalize(PYTHON).with_context(|| format!("cannot find {PYTHON}"))?;
    let python = python.file_name().context("Python has no name")?.to_string_lossy();
    let (least, rest) = (format!("lib{python}-minimal"), format!("lib{python}-stdlib"));
    let library = Packages::of(workspace, std::env::consts::ARCH)?.unpacked(&[&least, &rest])?;
    let modules = format!("/usr/lib/{python}");
    let examples = workspace.root.join("hardware-managers/examples");
    let host = examples.join("python_host.py");
    let folder = workspace.cache().join("python-manager");
    let mut build = command(&dist.builder);
    build.arg("build").arg("--output").arg(&folder);
    build.arg("--kernel").arg(dist.folder.join("vmlinuz")).arg("--modules").arg(&dist.modules);
    build.arg("--agent").arg(dist.folder.join("farrier-agent"));
    build.arg("--programs-root").arg(&dist.programs).arg("--cache").arg(dist::module_cache(workspace));
    build.args(["--program", "/usr/bin/env", "--program", PYTHON]);
    build.arg("--file").arg(pair(&library.join(modules.trim_start_matches('/')), &modules));
    build.arg("--file").arg(pair(&host, &format!("{PYTHON_PACKAGES}/python_host.py")));
    build.arg("--hardware-manager").arg(examples.join("asset_tag.py"));
    run(&mut build)?;
    Ok(folder)
}

/// A file, and its path in the ramdisk.
fn pair(file: &Path, path: &str) -> OsString {
    let mut pair = file.as_os_str().to_owned();
    pair.push(":");
    pair.push(path);
    pair
}
