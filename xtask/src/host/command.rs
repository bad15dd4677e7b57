//! Starts other programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Where administrators' programs are, which are not on the search path of other users.
const SYSTEM_FOLDERS: &[&str] = &["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// A program found by name, with the system's folders on its search path.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let program = program.as_ref();
    let found = find(program);
    let mut command = Command::new(found.as_deref().unwrap_or(Path::new(program)));
    if let Ok(path) = std::env::join_paths(search_path()) {
        command.env("PATH", path);
    }
    command
}

/// Like [`command`], through sudo unless this process is root already.
pub fn as_root(program: impl AsRef<OsStr>) -> Command {
    if is_root() {
        return command(program);
    }
    let mut sudo = command("sudo");
    sudo.arg(program);
    sudo
}

/// Whether this process may do everything.
pub fn is_root() -> bool {
    // The owner of a process' folder in /proc is its effective user.
    std::fs::metadata("/proc/self").is_ok_and(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata) == 0)
}

/// Where a program is, if it is installed.
pub fn find(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    search_path().map(|folder| folder.join(program.as_ref())).find(|path| path.is_file())
}

fn search_path() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SYSTEM_FOLDERS.iter().map(PathBuf::from))
        .collect::<Vec<_>>()
        .into_iter()
}

/// Runs to the end with the output shown; an exit code other than 0 is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let status =
        command.stdin(Stdio::null()).status().with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs to the end and keeps the output, which is shown only when the program fails.
pub fn run_quietly(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", shown(command)))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}:\n{text}{errors}", shown(command), output.status);
    }
    Ok(text)
}

/// The command as one would type it.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
