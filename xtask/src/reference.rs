//! `cargo xtask reference`: the pages of the book that are made from declarations.

use anyhow::Result;
use clap::Args;

use crate::command::run;
use crate::requirements;
use crate::workspace::{Workspace, cargo};

/// Writes the reference pages and the OpenAPI document in docs/ anew.
#[derive(Debug, Args)]
pub struct ReferenceArguments {}

/// Runs the command.
pub fn reference(ReferenceArguments {}: &ReferenceArguments) -> Result<()> {
    requirements::ensure(&[], true)?;
    let root = Workspace::find()?.root;
    run(cargo().args(["run", "--quiet", "-p", "farrier-agent", "--", "reference", "docs"]).current_dir(&root))
}
