//! The reference pages of the book and the OpenAPI document, made from the declarations of options,
//! commands, steps and collectors.
//!
//! What is committed in `docs/` is compared with this by a test, so that none of them can be wrong.
//!
//! The OpenAPI document is made here and not by a derive macro on handlers: what a conductor needs to
//! know is which commands there are and which parameters they take, and that stands in the tables of
//! commands. A macro sees one handler that takes any JSON.

mod openapi;
mod pages;

use std::fs;
use std::io;
use std::path::Path;

/// A file below `docs/`.
struct Document {
    path: &'static str,
    text: String,
}

fn documents() -> [Document; 5] {
    [
        Document { path: "src/reference/options.md", text: pages::options() },
        Document { path: "src/reference/commands.md", text: pages::commands() },
        Document { path: "src/reference/steps.md", text: pages::steps() },
        Document { path: "src/reference/collectors.md", text: pages::collectors() },
        Document { path: "openapi.json", text: openapi::text() },
    ]
}

/// Writes all of them below the folder `docs`.
///
/// # Errors
///
/// A file cannot be written.
pub fn write(docs: &Path) -> io::Result<()> {
    for Document { path, text } in documents() {
        let file = docs.join(path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_pages_say_what_is_declared() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        for Document { path, text } in documents() {
            let committed = fs::read_to_string(docs.join(path)).unwrap_or_default();
            assert!(committed == text, "docs/{path} is out of date: run cargo xtask reference");
        }
    }

    #[test]
    fn the_pages_are_written_where_the_test_looks_for_them() {
        let docs = tempfile::tempdir().unwrap();
        write(docs.path()).unwrap();
        for Document { path, text } in documents() {
            assert_eq!(fs::read_to_string(docs.path().join(path)).unwrap(), text);
        }
    }
}
