//! `cargo xtask reference`: the pages of the book that are made from declarations.

use anyhow::{Context, Result};
use clap::Args;
use std::fs;

use crate::host::command::run;
use crate::host::requirements;
use crate::host::workspace::{Workspace, cargo};

/// Writes the reference pages and the OpenAPI documents in docs/ again.
#[derive(Debug, Args)]
pub struct ReferenceArguments {}

/// Runs the command.
pub fn reference(ReferenceArguments {}: &ReferenceArguments) -> Result<()> {
    requirements::ensure(&[], true)?;
    let root = Workspace::find()?.root;
    for (path, text) in farrier_node_api::reference::documents() {
        let file = root.join("docs").join(path);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    for program in ["farrier", "farrier-agent"] {
        run(cargo().args(["run", "--quiet", "-p", program, "--", "reference", "docs"]).current_dir(&root))?;
    }
    Ok(())
}
