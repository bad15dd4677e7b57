//! Features of the libraries that this program and the tests share: where they differ, `cargo xtask test` builds a library
//! twice.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};

use crate::host::command::run_quietly;
use crate::host::workspace::cargo;

/// What this program alone must do without: libblkid, whose headers it installs.
const APART: &str = "farrier-linux";

/// Refuses libraries that this program has with other features than the tests.
pub fn refuse_built_twice(root: &Path) -> Result<()> {
    let own = libraries(root, &["--package", "xtask", "--edges", "normal,build"])?;
    let tests = libraries(root, &["--workspace", "--edges", "normal,build,dev"])?;
    let twice = built_twice(&own, &tests);
    if !twice.is_empty() {
        bail!(
            "cargo xtask test builds these libraries twice; give xtask/Cargo.toml the features that tests need of \
             them:\n{}",
            twice.join("\n")
        );
    }
    Ok(())
}

/// Each library with its features, a line each.
fn libraries(root: &Path, what: &[&str]) -> Result<BTreeSet<String>> {
    let lines = ["--no-dedupe", "--prefix", "none", "--format", "{p}: {f}"];
    let tree = run_quietly(cargo().arg("tree").args(what).args(lines).current_dir(root))?;
    Ok(tree.lines().map(str::to_owned).collect())
}

fn built_twice<'a>(own: &'a BTreeSet<String>, tests: &'a BTreeSet<String>) -> Vec<&'a str> {
    let is_apart = |library: &str| library.split(' ').next() == Some(APART);
    own.difference(tests).map(String::as_str).filter(|library| !is_apart(library)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_with_other_features_is_named_but_for_the_one_apart() {
        let lines = |lines: [&str; 3]| lines.map(str::to_owned).into();
        let own = lines(["farrier-linux v1: ", "reqwest v1: json", "serde v1: std"]);
        let tests = lines(["farrier-linux v1: blkid", "reqwest v1: form,json", "serde v1: std"]);
        assert_eq!(built_twice(&own, &tests), ["reqwest v1: json"]);
    }

    #[test]
    fn no_library_is_built_twice() {
        refuse_built_twice(&crate::host::workspace::Workspace::find().unwrap().root).unwrap();
    }
}
