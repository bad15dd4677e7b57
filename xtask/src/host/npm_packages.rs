//! Packages of npm that tests need, with exactly the versions and digests that a lock file names. Nothing is built with them.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use super::command::{command, run};
use super::workspace::Workspace;

/// What npm reads: the packages, and their digests.
const FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// The program of axe-core, which finds what hinders users of a page.
pub fn axe(workspace: &Workspace) -> Result<PathBuf> {
    let (packages, folder) = (workspace.root.join("tests/browser"), workspace.cache().join("npm"));
    let program = folder.join("node_modules/axe-core/axe.min.js");
    let is_same = |name: &&str| {
        fs::read(folder.join(name))
            .is_ok_and(|kept| fs::read(packages.join(name)).is_ok_and(|new| kept == new))
    };
    if FILES.iter().all(is_same) && program.exists() {
        return Ok(program);
    }
    println!("Installing axe-core in {}", folder.display());
    fs::create_dir_all(&folder)?;
    for name in FILES {
        fs::copy(packages.join(name), folder.join(name))?;
    }
    let options = ["ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"];
    run(command("npm").args(options).current_dir(&folder))?;
    Ok(program)
}
