//! The book and the README name paths, pages, tests and commands that exist.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use clap::Parser;

use crate::Cli;
use crate::host::workspace::Workspace;

/// Most words of the README.
const MOST_WORDS: usize = 600;

/// Marks of claims.
const MARKS: [&str; 3] = ["✓", "◐", "–"];

fn read(file: &str) -> String {
    std::fs::read_to_string(Workspace::find().unwrap().root.join(file)).unwrap()
}

/// The body rows of the tables in a text, by cells.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().filter(|line| line.starts_with("| ") && line.ends_with('|'));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn the_readme_is_one_screen() {
    let words = read("README.md").split_whitespace().count();
    assert!(words <= MOST_WORDS, "README.md has {words} words");
}

#[test]
fn every_claim_of_the_readme_has_its_row_in_status() {
    let (readme, status) = (read("README.md"), read("docs/src/status.md"));
    let (_, table) = readme.split_once("| | status | read on |").unwrap();
    let mut claims = 0;
    for row in rows(table) {
        let section = status.split(&format!("\n## {}\n", row[0])).nth(1);
        let section = section.unwrap_or_else(|| panic!("status.md has no section {}", row[0]));
        let section = section.split("\n## ").next().unwrap();
        for claim in row[1].split(" · ") {
            let (mark, name) = claim.split_once(' ').unwrap();
            assert!(MARKS.contains(&mark), "{claim}");
            let is_there =
                rows(section).iter().any(|row| row[0].starts_with(&format!("**{name}**")) && row[1] == mark);
            assert!(is_there, "status.md has no row for {claim} in {}", row[0]);
            claims += 1;
        }
    }
    assert!(claims >= 30, "{claims}");
}

#[test]
fn every_claim_of_status_has_evidence_that_exists() {
    let status = read("docs/src/status.md");
    let (_, status) = status.split_once("\n## Deploy\n").unwrap();
    let tests = tests();
    for row in rows(status).into_iter().filter(|row| row[0].starts_with("**")) {
        let [claim, mark, evidence, _] = row[..] else { panic!("{row:?}") };
        assert!(MARKS.contains(&mark), "{claim}: {mark}");
        assert!(mark == "–" || evidence.contains('`'), "{claim} has no evidence");
        for named in evidence.split('`').skip(1).step_by(2) {
            match named.strip_prefix("cargo xtask ") {
                Some(command) => {
                    let line = ["xtask"].into_iter().chain(command.split(' '));
                    assert!(Cli::try_parse_from(line).is_ok(), "{claim}: {named} is no command");
                }
                None => assert!(tests.contains(named), "{claim}: there is no test {named}"),
            }
        }
    }
}

/// The names of all functions in the repository.
fn tests() -> BTreeSet<String> {
    let root = Workspace::find().unwrap().root;
    let found =
        Command::new("git").args(["grep", "-hoE", r"fn [a-z0-9_]+", "--", "*.rs"]).current_dir(root).output();
    let found = String::from_utf8(found.unwrap().stdout).unwrap();
    found.lines().map(|line| line.trim_start_matches("fn ").to_owned()).collect()
}

#[test]
fn every_page_is_in_the_summary_and_every_link_leads_to_a_page_and_a_heading() {
    let root = Workspace::find().unwrap().root;
    let mut pages = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned(), "CHANGELOG.md".to_owned()];
    for folder in ["docs/src", "docs/src/reference"] {
        let names = std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| format!("{folder}/{}", name.to_string_lossy()));
        pages.extend(names.filter(|name| name.ends_with(".md")));
    }
    let summary = links(&read("docs/src/SUMMARY.md"));
    let mut broken = Vec::new();
    for page in &pages {
        if let Some(name) = page.strip_prefix("docs/src/")
            && name != "SUMMARY.md"
            && !summary.iter().any(|link| link == name)
        {
            broken.push(format!("{page} is not in SUMMARY.md"));
        }
        for link in links(&read(page)).into_iter().filter(|link| !link.contains("://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let folder = root.join(page);
            let file = if path.is_empty() { folder.clone() } else { folder.parent().unwrap().join(path) };
            if !file.exists() || !has_anchor(&file, anchor) {
                broken.push(format!("{page}: {link} leads nowhere"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The targets of links and pictures, outside of code.
fn links(page: &str) -> Vec<String> {
    let blocks = page.split("```").step_by(2);
    let text: String = blocks.flat_map(|block| block.split('`').step_by(2)).collect();
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).collect()
}

/// Whether a page has a heading with this anchor, as mdBook makes it.
fn has_anchor(file: &Path, anchor: &str) -> bool {
    if anchor.is_empty() || file.extension().is_none_or(|extension| extension != "md") {
        return true;
    }
    let page = std::fs::read_to_string(file).unwrap();
    let headings = page.split("```").step_by(2).flat_map(str::lines).filter(|line| line.starts_with('#'));
    let mut anchors = headings.map(|heading| {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || "_- ".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>()
    });
    anchors.any(|found| found == anchor)
}

#[test]
fn every_path_of_where_is_leads_somewhere() {
    let root = Workspace::find().unwrap().root;
    let page = std::fs::read_to_string(root.join("docs/src/architecture.md")).unwrap();
    let (_, table) = page.split_once("## Where is …").unwrap();
    let table = table.split("\n## ").next().unwrap();
    let paths: Vec<_> = table.lines().filter_map(|row| row.strip_suffix("` |")?.rsplit('`').next()).collect();
    assert!(paths.len() >= 20, "{paths:?}");
    for path in paths {
        assert!(root.join(path).exists(), "{path} is gone: say where it is now");
    }
}

#[test]
fn the_fields_own_words_are_found_in_the_room_they_lead_to() {
    let root = Workspace::find().unwrap().root;
    for (word, path) in [
        ("probing", "disk/src/probe.rs"),
        ("wiping", "disk/src/wipe.rs"),
        ("lsblk", "disk/src/list/mod.rs"),
        ("multipath", "disk/src/list/multipath.rs"),
        ("mdadm", "disk/src/md/assemble.rs"),
        ("scan", "disk/src/md/assemble.rs"),
        ("discard", "disk/src/io/zero.rs"),
        ("coldplug", "init/src/devices.rs"),
        ("hotplug", "init/src/devices.rs"),
        ("modprobe", "init/src/devices.rs"),
        ("settle", "agent/src/settle/mod.rs"),
        ("scan", "agent/src/settle/fabric.rs"),
        ("lookup", "agent/src/conductor/lookup.rs"),
        ("retry", "agent/src/conductor/lookup.rs"),
        ("heartbeats", "agent/src/conductor/heartbeat.rs"),
        ("retry", "agent/src/conductor/heartbeat.rs"),
        ("retry", "imaging/src/source/body.rs"),
        ("verifying", "imaging/src/readback.rs"),
        ("secure erase", "hardware-managers/src/erase.rs"),
        ("sanitize", "hardware-managers/src/erase/command_set/secure.rs"),
        ("shredding", "hardware-managers/src/erase/overwrite.rs"),
    ] {
        let source = std::fs::read_to_string(root.join(path)).unwrap();
        let documentation: Vec<_> = source.lines().filter_map(|line| line.strip_prefix("//!")).collect();
        assert!(
            documentation.join("").to_lowercase().contains(word),
            "nobody who searches for {word} finds {path}"
        );
    }
}
