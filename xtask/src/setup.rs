//! `cargo xtask setup`: what this machine needs before cargo can build the workspace.

use anyhow::Result;
use clap::Args;

use crate::requirements;

/// Installs the library that the agent links, and what reads its headers.
#[derive(Debug, Args)]
pub struct SetupArguments {
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// Runs the command.
pub fn setup(arguments: &SetupArguments) -> Result<()> {
    requirements::ensure(&[], !arguments.no_install)
}
