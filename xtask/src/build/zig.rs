//! The C compiler for other architectures: zig from PyPI, which brings musl's headers for each of them.
//!
//! Build scripts name the target as rustc does, which zig does not understand. So they are given this
//! program itself under the names of a compiler and an archiver; it calls zig without that argument.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::host::command::command;
use crate::host::python_environment;
use crate::host::workspace::Workspace;

/// Compiler and archiver for one architecture.
#[derive(Debug)]
pub struct Zig {
    /// The compiler.
    pub compiler: PathBuf,
    /// The archiver.
    pub archiver: PathBuf,
}

impl Zig {
    /// Installs zig into the cache, once.
    ///
    /// # Errors
    ///
    /// Python or PyPI cannot be reached.
    pub fn install(workspace: &Workspace, arch: &str) -> Result<Self> {
        let folder = workspace.cache().join("zig");
        python_environment::install("zig", &workspace.root.join("xtask/zig-requirements.txt"), &folder)?;
        let program = std::env::current_exe()?;
        let tool = |name: &str| -> Result<PathBuf> {
            let link = folder.join(format!("{arch}-zig-{name}"));
            fs::remove_file(&link).ok();
            symlink(&program, &link).with_context(|| format!("cannot make {}", link.display()))?;
            Ok(link)
        };
        Ok(Self { compiler: tool("cc")?, archiver: tool("ar")? })
    }

    /// Folders with the headers of musl and of the kernel that it brings for an architecture.
    ///
    /// # Errors
    ///
    /// zig is not where it was installed.
    pub fn headers(&self, arch: &str) -> Result<Vec<PathBuf>> {
        let program = find(self.compiler.parent().unwrap_or(Path::new(".")))?;
        let headers = program.with_file_name("lib").join("libc/include");
        Ok([format!("{arch}-linux-musl"), "generic-musl".to_owned()].map(|name| headers.join(name)).into())
    }
}

/// Runs zig and gives its exit code, when this program was called by the name of one of its tools.
///
/// # Errors
///
/// zig is not where it was installed.
pub fn run_as_tool() -> Result<Option<i32>> {
    let mut arguments = std::env::args_os();
    let called = PathBuf::from(arguments.next().unwrap_or_default());
    let name = called.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Some((arch, tool)) = name.split_once("-zig-") else { return Ok(None) };
    let mut zig = command(find(called.parent().unwrap_or(Path::new(".")))?);
    zig.arg(tool);
    if tool == "cc" {
        zig.args(["-target", &format!("{arch}-linux-musl")]);
    }
    zig.args(arguments.filter(|argument| !argument.to_string_lossy().starts_with("--target=")));
    let status = zig.status().context("cannot start zig")?;
    Ok(Some(status.code().unwrap_or(1)))
}

/// zig's own program in a Python environment.
fn find(environment: &Path) -> Result<PathBuf> {
    let versions = fs::read_dir(environment.join("lib"))?;
    let mut candidates =
        versions.filter_map(|entry| Some(entry.ok()?.path().join("site-packages/ziglang/zig")));
    let found = candidates.find(|path| path.is_file());
    found.with_context(|| format!("{} has no zig; delete it and try again", environment.display()))
}
