//! The crates of the conductor: levels of their rooms, the page that shows them, and what the thin library depends on.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{imports, levels, picture};
use crate::host::command::{run, run_quietly};
use crate::host::workspace::{Workspace, cargo};

/// The crates whose rooms have levels, and their pictures a place in the book.
const CRATES: [&str; 4] = ["farrier-conductor", "farrier-engine", "farrier-node-api", "farrier-page"];

/// The page of the book.
const PAGE: &str = "docs/src/conductor-rooms.md";

/// Most crates that the thin library without features depends on.
const MOST_CRATES: usize = 80;

/// Each feature of the thin library, with crates that it must do without. Only `testing` has a server: the
/// scripted agent, on hyper.
const FEATURES: &[(&str, &[&str])] = &[
    ("", &["hyper", "reqwest", "ring", "rustls", "sha-crypt", "tokio"]),
    ("client", &["async-trait", "sha-crypt"]),
    ("drivers", &[]),
    ("testing", &[]),
];

/// What no feature of the thin library depends on.
const NEVER: &[&str] = &["aws-lc-rs", "axum", "clap", "indicatif", "prometheus-client", "sqlx", "sqlx-core"];

/// Refuses rooms of the conductor's crates that import one above them, and a page that shows other imports. With
/// `writes` the page is written.
pub fn refuse_imports_upwards(workspace: &Workspace, writes: bool) -> Result<()> {
    let rooms = CRATES.map(|name| {
        let (_, folder) =
            workspace.sources.iter().find(|(found, _)| found == name).context("a crate is gone")?;
        Ok(levels::rooms(&imports::read(folder)?))
    });
    let rooms: Vec<_> = rooms.into_iter().collect::<Result<_>>()?;
    let mut described = Vec::new();
    for (name, rooms) in CRATES.iter().zip(&rooms) {
        let levels = levels::levels(rooms).with_context(|| format!("the rooms of {name}"))?;
        show(workspace, &format!("docs/src/{name}-rooms.svg"), &picture::svg(rooms, &levels), writes)?;
        described.push((*name, levels));
    }
    show(workspace, PAGE, &picture::page(&described), writes)
}

fn show(workspace: &Workspace, file: &str, text: &str, writes: bool) -> Result<()> {
    let is_there = fs::read_to_string(workspace.root.join(file)).is_ok_and(|there| there == text);
    match (is_there, writes) {
        (true, _) => Ok(()),
        (false, true) => workspace.write_page(file, text),
        (false, false) => bail!("{file} does not show the imports as they are; run cargo xtask lint --page"),
    }
}

/// Refuses crates that the thin library must do without, by feature. Each of them must build alone.
pub fn refuse_thick_library(root: &Path) -> Result<()> {
    for (feature, without) in FEATURES {
        let library = ["-p", "farrier-conductor", "--no-default-features", "--features", feature];
        run(cargo().arg("clippy").args(library).args(["--", "-D", "warnings"]).current_dir(root))?;
        let tree = ["--edges", "normal", "--prefix", "none", "--format", "{p}"];
        let tree = run_quietly(cargo().arg("tree").args(library).args(tree).current_dir(root))?;
        let mut crates: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        crates.sort_unstable();
        crates.dedup();
        crates.retain(|name| *name != "farrier-conductor");
        let thick: Vec<_> =
            crates.iter().filter(|name| without.contains(name) || is_thick(name)).copied().collect();
        let feature = if feature.is_empty() { "no feature" } else { feature };
        if !thick.is_empty() {
            bail!("farrier-conductor with {feature} depends on {}", thick.join(", "));
        }
        println!("farrier-conductor with {feature}: {} crates", crates.len());
        if feature == "no feature" && crates.len() > MOST_CRATES {
            bail!(
                "farrier-conductor without features depends on {} crates, at most {MOST_CRATES} are allowed",
                crates.len()
            );
        }
    }
    Ok(())
}

/// Whether a crate brings code in C, a server, a database or a command line. `ring` is none of them: without its TLS no
/// agent is spoken to.
fn is_thick(name: &str) -> bool {
    name.ends_with("-sys") && !["linux-raw-sys", "windows-sys"].contains(&name) || NEVER.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_libraries_are_known_by_their_names() {
        let names =
            ["libsqlite3-sys", "blkid-sys", "linux-raw-sys", "ring", "clap", "rustls", "syslog", "systemd"];
        let thick: Vec<_> = names.into_iter().filter(|name| is_thick(name)).collect();
        assert_eq!(thick, ["libsqlite3-sys", "blkid-sys", "clap"]);
    }

    #[test]
    fn no_room_of_the_conductor_imports_one_above_it_and_the_book_shows_that() {
        refuse_imports_upwards(&Workspace::find().unwrap(), false).unwrap();
    }
}
