//! `cargo xtask lint`: formatting, lints, words of texts, codes of errors, circles and levels of imports, crowded folders,
//! libraries that are built twice, how thin the library for conductors is, licences and sources.

mod circles;
mod codes;
mod conductor;
mod features;
mod folders;
mod imports;
mod levels;
mod picture;
mod words;

use anyhow::{Result, bail};
use clap::Args;

use crate::host::command::{find, run, run_quietly};
use crate::host::requirements;
use crate::host::workspace::{Workspace, cargo};

/// Checks formatting (rustfmt), code (clippy), circles and levels of imports, crowded folders, libraries that are
/// built twice, words of texts, codes of errors and dependencies (cargo-deny).
#[derive(Debug, Args)]
pub struct LintArguments {
    /// Installs cargo-deny when it is missing.
    #[arg(long)]
    install: bool,
    /// Writes the page of the book that shows the imports of the conductor's crates.
    #[arg(long)]
    page: bool,
    /// Only checks the words and sentences of README, book and help texts, and prints their figures.
    #[arg(long)]
    words: bool,
}

/// Runs the command.
pub fn lint(arguments: &LintArguments) -> Result<()> {
    if arguments.words {
        return words::refuse(&Workspace::find()?.root, true);
    }
    requirements::ensure(&[], true)?;
    let workspace = Workspace::find()?;
    let root = &workspace.root;
    words::refuse(root, false)?;
    codes::refuse(root, &workspace.sources)?;
    run(cargo().args(["fmt", "--all", "--check"]).current_dir(root))?;
    circles::refuse(&workspace.sources)?;
    levels::refuse(&workspace.sources)?;
    folders::refuse(&workspace.root, &workspace.folders())?;
    conductor::refuse_imports_upwards(&workspace, arguments.page)?;
    features::refuse_built_twice(root)?;
    run(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).current_dir(root))?;
    conductor::refuse_thick_library(root)?;
    if find("cargo-deny").is_none() {
        if !arguments.install {
            bail!("cargo-deny is missing; install it, or run cargo xtask lint --install");
        }
        run(cargo().args(["install", "--locked", "cargo-deny"]))?;
    }
    run(cargo().args(["deny", "check", "licenses", "bans", "sources"]).current_dir(root))?;
    if run_quietly(cargo().args(["deny", "fetch", "db"]).current_dir(root)).is_err() {
        println!("advisories not checked: their database cannot be reached");
        return Ok(());
    }
    run(cargo().args(["deny", "--offline", "check", "advisories"]).current_dir(root))
}
