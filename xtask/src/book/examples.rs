//! The Rust code of the book is code of the examples, which compile and run as tests.

use std::fs;

use super::claims::read;
use crate::host::workspace::Workspace;

/// The crates with examples.
const CRATES: [&str; 4] = ["conductor-lib", "drivers", "imaging", "node-api"];

/// The blocks of Rust in a page.
fn blocks(page: &str) -> impl Iterator<Item = &str> {
    page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next())
}

/// The lines of a block that no single example has in this order.
fn not_compiled<'a>(block: &'a str, examples: &[String]) -> Vec<&'a str> {
    let missing = |example: &String| {
        let mut rest = example.lines().map(str::trim);
        let is_missing = |line: &&str| {
            let mut ahead = rest.clone();
            let is_found = ahead.any(|other| other == *line);
            if is_found {
                rest = ahead;
            }
            !is_found
        };
        block.lines().map(str::trim).filter(|line| !line.is_empty()).filter(is_missing).collect::<Vec<_>>()
    };
    examples.iter().map(missing).min_by_key(Vec::len).unwrap_or_default()
}

fn examples() -> Vec<String> {
    let root = Workspace::find().unwrap().root;
    let folders = CRATES.iter().map(|name| fs::read_dir(root.join(name).join("examples")).unwrap());
    folders.flatten().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
}

#[test]
fn each_line_of_rust_in_the_book_is_a_line_of_an_example_that_compiles() {
    let examples = examples();
    let summary = read("docs/src/SUMMARY.md");
    let pages = summary.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let mut found = 0;
    for page in pages.map(|(page, _)| format!("docs/src/{page}")).chain(["README.md".to_owned()]) {
        for block in blocks(&read(&page)) {
            assert_eq!(not_compiled(block, &examples), Vec::<&str>::new(), "{page}");
            found += 1;
        }
    }
    assert!(found >= 2, "{found}");
}

#[test]
fn an_example_in_the_book_that_no_longer_compiles_is_found() {
    let examples = ["fn main() {\n    let a = now();\n    b(a);\n}".to_owned()];
    let page = "Text.\n\n```rust\nlet a = now();\nb(a);\n```\n\n```rust\nlet a = before();\n```\n\n```rust\nb(a);\nlet a = now();\n```\n";
    let found: Vec<_> = blocks(page).map(|block| not_compiled(block, &examples)).collect();
    assert_eq!(found, [vec![], vec!["let a = before();"], vec!["let a = now();"]]);
}
