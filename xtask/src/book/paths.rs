//! The book and the README lead to pages and paths that exist.

use std::path::Path;

use super::claims::read;
use crate::host::workspace::Workspace;

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
            if !leads_somewhere(&root.join(page), &link) {
                broken.push(format!("{page}: {link} leads nowhere"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Whether a link of a page leads to a file, and to a heading in it.
fn leads_somewhere(page: &Path, link: &str) -> bool {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let file = if path.is_empty() { page.to_owned() } else { page.parent().unwrap().join(path) };
    file.exists() && has_anchor(&file, anchor)
}

#[test]
fn a_link_to_a_page_or_a_heading_that_was_renamed_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("a.md");
    std::fs::write(&page, "# Title\n\n## The *new* name\n").unwrap();
    std::fs::write(folder.path().join("new.md"), "# New\n").unwrap();
    for (link, expected) in [
        ("new.md", true),
        ("new.md#new", true),
        ("#the-new-name", true),
        ("old.md", false),
        ("new.md#old", false),
        ("#the-old-name", false),
    ] {
        assert_eq!(leads_somewhere(&page, link), expected, "{link}");
    }
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
        ("settle", "agent/src/device_settle/mod.rs"),
        ("scan", "agent/src/device_settle/fabric.rs"),
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
