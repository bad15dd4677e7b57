//! Codes of errors: each table of codes is in the book, something gives each code, and no program prints an error
//! without one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The source that has the tables of the book.
const PAGE: &str = "farrier/src/reference/errors.rs";

/// The programs, with the folders of their sources.
const PROGRAMS: [(&str, &str); 3] =
    [("farrier", "farrier/src"), ("farrier-agent", "agent/src"), ("farrier-image", "image-build/src")];

/// The beginning of a table of codes.
const TABLE: &str = "error_codes! {";

/// Refuses codes that are not in the book or that nothing gives, and programs that print an error without a code.
pub fn refuse(root: &Path, crates: &[(String, std::path::PathBuf)]) -> Result<()> {
    let mut sources = Vec::new();
    for (_, folder) in crates {
        read(folder, &mut sources)?;
    }
    let page = fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let mut faults = unused(&sources, &page);
    for (program, folder) in PROGRAMS {
        let mut sources = Vec::new();
        read(&root.join(folder), &mut sources)?;
        faults.extend(sources.iter().flat_map(|source| bare_errors(program, source)));
    }
    if !faults.is_empty() {
        bail!("{} faults of error codes:\n{}", faults.len(), faults.join("\n"));
    }
    Ok(())
}

fn read(folder: &Path, sources: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, sources)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            sources.push(fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

/// Tables that the page does not have, and codes whose names stand in their tables alone.
fn unused(sources: &[String], page: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut rest = String::new();
    let mut tables = Vec::new();
    for source in sources {
        let mut parts = source.split(TABLE);
        rest += parts.next().unwrap_or_default();
        for part in parts {
            let (table, after) = part.split_once("\n}\n").unwrap_or((part, ""));
            tables.push(table);
            rest += after;
        }
    }
    let used: BTreeSet<_> = rest.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    for table in tables {
        for line in table.lines().map(str::trim).filter(|line| line.starts_with(|c: char| c.is_uppercase())) {
            match (line.split_once(" = "), line.strip_suffix(':')) {
                (Some((code, _)), _) if !used.contains(code) => {
                    faults.push(format!("nothing gives the code {code}"));
                }
                (None, Some(table)) if !page.contains(table) => {
                    faults.push(format!("{PAGE} does not have the table {table}"));
                }
                _ => {}
            }
        }
    }
    faults
}

/// Errors that a source of a program prints without a code.
fn bare_errors(program: &str, source: &str) -> Vec<String> {
    let prints = source.split("eprintln!(").skip(1).map(|rest| rest.split(");").next().unwrap_or(rest));
    let start = format!("\"{program}: ");
    prints
        .filter(|text| text.contains(&start) || text.contains("error"))
        .filter(|text| !text.contains("line(") && !text.contains(".after("))
        .map(|text| format!("{program} prints an error without its code: {}", text.trim()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::workspace::Workspace;

    #[test]
    fn each_error_has_a_code_in_the_book() {
        let workspace = Workspace::find().unwrap();
        refuse(&workspace.root, &workspace.sources).unwrap();
    }

    #[test]
    fn a_code_that_nothing_gives_and_a_table_that_is_not_in_the_book_are_found() {
        let source = format!(
            "{TABLE}\n    /// About.\n    TABLE:\n    USED = 1, \"A.\",\n        \"B.\";\n    IDLE = 2, \"C.\", \"D.\";\n}}\n"
        );
        let sources = [source, "fn f() { USED.after(\"x\") }".to_owned()];
        assert_eq!(unused(&sources, "(\"Title\", TABLE)"), ["nothing gives the code IDLE"]);
        assert_eq!(unused(&sources, "").first().unwrap(), &format!("{PAGE} does not have the table TABLE"));
    }

    #[test]
    fn an_error_that_a_program_prints_without_its_code_is_found() {
        for (statement, expected) in [
            ("eprintln!(\"a: {}\", failure::line(&error));", 0),
            ("eprintln!(\"a: {}\", code.after(&text));", 0),
            ("eprintln!(\"[a: quit]\");", 0),
            ("eprintln!(\"a: {error:#}\");", 1),
            ("eprintln!(\n    \"a: no room\"\n);", 1),
        ] {
            assert_eq!(bare_errors("a", statement).len(), expected, "{statement}");
        }
    }
}
