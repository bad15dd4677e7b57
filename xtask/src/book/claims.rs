//! The README is short, and each of its claims has evidence that exists.

use std::collections::BTreeSet;
use std::process::Command;

use clap::Parser;

use crate::Cli;
use crate::host::workspace::Workspace;

/// Most words of the README.
const MOST_WORDS: usize = 600;

/// Marks of claims.
const MARKS: [&str; 3] = ["✓", "◐", "–"];

pub(super) fn read(file: &str) -> String {
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

/// The names of all tests in the repository: functions after an attribute that makes them tests.
fn tests() -> BTreeSet<String> {
    let root = Workspace::find().unwrap().root;
    let pattern = r"#\[(tokio::)?test|fn [a-z0-9_]+";
    let found = Command::new("git").args(["grep", "-hoE", pattern, "--", "*.rs"]).current_dir(root).output();
    let found = String::from_utf8(found.unwrap().stdout).unwrap();
    let (mut tests, mut is_test) = (BTreeSet::new(), false);
    for line in found.lines() {
        match line.strip_prefix("fn ") {
            Some(name) if is_test => drop(tests.insert(name.to_owned())),
            _ => {}
        }
        is_test = line.starts_with("#[");
    }
    tests
}
