//! The tier `docs`: the book builds with its search, its links hold, and the documentation of the crates has no warning.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Output};

use crate::host::workspace::{Workspace, cargo};

/// The mdBook that builds the book.
const MDBOOK: &str = "0.4.52";

/// Runs a command that must succeed and say nothing of this.
fn run(command: &mut Command, refused: &[&str]) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(status.success(), "{command:?}: {said}");
    for word in refused {
        assert!(!said.contains(word), "{command:?}: {said}");
    }
}

/// mdBook, which is installed into the cache when it is not there.
fn mdbook(workspace: &Workspace) -> PathBuf {
    let root = workspace.cache().join("mdbook");
    let mut install = cargo();
    install.args(["install", "mdbook", "--version", MDBOOK, "--locked", "--no-default-features"]);
    install.args(["--features", "search", "--root"]).arg(&root);
    install.arg("--target-dir").arg(root.join("target"));
    run(&mut install, &[]);
    root.join("bin/mdbook")
}

#[test]
fn docs_the_book_builds_with_search_and_every_link_in_it_leads_somewhere() {
    let workspace = Workspace::find().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut build = Command::new(mdbook(&workspace));
    build.args(["build", "--dest-dir"]).arg(folder.path()).arg(workspace.root.join("docs"));
    run(&mut build, &["[WARN]", "[ERROR]"]);
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().any(|name| name.to_string_lossy().starts_with("searchindex")), "no search");
    let summary = fs::read_to_string(workspace.root.join("docs/src/SUMMARY.md")).unwrap();
    let written: BTreeMap<_, _> = summary
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(page, _)| {
            let html = PathBuf::from(page).with_extension("html");
            let text = fs::read_to_string(folder.path().join(&html));
            (html, text.unwrap_or_else(|error| panic!("{page} is not in the book: {error}")))
        })
        .collect();
    assert!(written.len() > 50, "{}", written.len());
    let mut broken = BTreeSet::new();
    for (page, text) in &written {
        let content = text.split("<main>").nth(1).and_then(|rest| rest.split("</main>").next()).unwrap();
        for link in values(content, "href").chain(values(content, "src")) {
            if !leads(link, page, &written, folder.path(), &workspace.root.join("docs/src")) {
                broken.insert(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links lead nowhere:\n{}", broken.into_iter().collect::<Vec<_>>().join("\n"));
}

/// The values of an attribute in HTML.
fn values<'a>(html: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {attribute}=\"");
    html.match_indices(&start)
        .map(|(index, start)| &html[index + start.len()..])
        .filter_map(|rest| rest.split('"').next())
        .collect::<Vec<_>>()
        .into_iter()
}

/// Whether a link of a page leads to a page of the book and its heading, to a file of the book, or out of the book to a
/// file of the repository.
fn leads(link: &str, page: &Path, book: &BTreeMap<PathBuf, String>, built: &Path, source: &Path) -> bool {
    if link.contains("://") || link.starts_with("data:") {
        return true;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let below = page.parent().unwrap_or(Path::new(""));
    let target = if path.is_empty() { page.to_owned() } else { resolved(&below.join(path)) };
    match book.get(&target) {
        Some(text) => anchor.is_empty() || text.contains(&format!("id=\"{anchor}\"")),
        None => built.join(&target).exists() || source.join(below).join(path).exists(),
    }
}

/// A path without `..`, as far as it is below its beginning.
fn resolved(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir if resolved.file_name().is_some() => drop(resolved.pop()),
            component => resolved.push(component),
        }
    }
    resolved
}

#[test]
fn a_link_of_the_book_to_a_page_or_a_heading_that_was_renamed_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let book = BTreeMap::from([("reference/a.html", "<h2 id=\"new\">"), ("b.html", "<h1 id=\"b\">")]);
    let book = book.into_iter().map(|(page, text)| (PathBuf::from(page), text.to_owned())).collect();
    for (link, expected) in [
        ("../b.html", true),
        ("../b.html#b", true),
        ("#new", true),
        ("https://example.org/old", true),
        ("b.html", false),
        ("../old.html", false),
        ("../b.html#old", false),
        ("#old", false),
    ] {
        let found = leads(link, Path::new("reference/a.html"), &book, folder.path(), folder.path());
        assert_eq!(found, expected, "{link}");
    }
}

#[test]
fn docs_the_documentation_of_the_crates_has_no_warning() {
    let root = Workspace::find().unwrap().root;
    let mut doc = cargo();
    doc.args(["doc", "--workspace", "--no-deps", "--all-features"]).current_dir(root);
    run(doc.env("RUSTDOCFLAGS", "-D warnings"), &[]);
}
