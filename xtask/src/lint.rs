//! `cargo xtask lint`: formatting, lints, circles of imports, crowded folders, how thin the library for conductors is, licences and
//! sources.

mod circles;
mod folders;
mod imports;

use anyhow::{Result, bail};
use clap::Args;

use crate::command::{find, run, run_quietly};
use crate::requirements;
use crate::workspace::{Workspace, cargo};

/// Checks formatting (rustfmt), code (clippy), circles of imports, crowded folders and dependencies (cargo-deny).
#[derive(Debug, Args)]
pub struct LintArguments {
    /// Installs cargo-deny when it is missing.
    #[arg(long)]
    install: bool,
}

/// Runs the command.
pub fn lint(arguments: &LintArguments) -> Result<()> {
    requirements::ensure(&[], true)?;
    let workspace = Workspace::find()?;
    let root = &workspace.root;
    run(cargo().args(["fmt", "--all", "--check"]).current_dir(root))?;
    circles::refuse(&workspace.sources)?;
    folders::refuse(&workspace.root, &workspace.folders())?;
    run(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).current_dir(root))?;
    thin_library(&workspace)?;
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

/// Refuses C libraries, servers, databases and command lines in the library for conductors without its features, which must build.
fn thin_library(workspace: &Workspace) -> Result<()> {
    let library = ["-p", "farrier-conductor", "--no-default-features"];
    let root = &workspace.root;
    run(cargo().arg("clippy").args(library).args(["--", "-D", "warnings"]).current_dir(root))?;
    let tree = ["--edges", "normal", "--prefix", "none", "--format", "{lib}"];
    let tree = run_quietly(cargo().arg("tree").args(library).args(tree).current_dir(root))?;
    let thick: Vec<_> = tree.lines().filter(|name| is_thick(name)).collect();
    if !thick.is_empty() {
        bail!("farrier-conductor without its features depends on {}", thick.join(", "));
    }
    Ok(())
}

/// Whether a crate, by its name in Rust, brings code in C, a server, a database or a command line. `ring` is none of them: without its TLS no
/// agent is spoken to. `linux_raw_sys` has the numbers of the kernel in Rust.
fn is_thick(name: &str) -> bool {
    (name.ends_with("_sys") && name != "linux_raw_sys")
        || ["aws_lc_rs", "axum", "clap", "indicatif", "prometheus_client", "sqlx"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_libraries_are_known_by_their_names() {
        let names =
            ["libsqlite3_sys", "blkid_sys", "linux_raw_sys", "ring", "clap", "rustls", "syslog", "systemd"];
        let thick: Vec<_> = names.into_iter().filter(|name| is_thick(name)).collect();
        assert_eq!(thick, ["libsqlite3_sys", "blkid_sys", "clap"]);
    }
}
