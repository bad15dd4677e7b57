//! `cargo xtask setup`: what this machine needs before cargo can build the workspace.

use anyhow::Result;
use clap::Args;

use super::requirements;

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

#[cfg(test)]
mod tests {
    use crate::host::command::run_quietly;
    use crate::host::workspace::{Workspace, cargo};

    /// Feature tables that unite builds have brought libblkid into the program that installs it.
    #[test]
    fn what_installs_libblkid_is_built_without_it() {
        let workspace = Workspace::find().unwrap();
        let tree =
            ["tree", "--package", "xtask", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
        let tree =
            run_quietly(cargo().args(tree).args(["--offline", "--locked"]).current_dir(workspace.root))
                .unwrap();
        let needed: Vec<_> = tree
            .lines()
            .filter(|package| package.starts_with("blkid") || package.starts_with("bindgen"))
            .collect();
        assert!(tree.contains("farrier-linux"), "{tree}");
        assert_eq!(needed, Vec::<&str>::new());
    }
}
