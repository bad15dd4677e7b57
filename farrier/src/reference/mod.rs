//! `farrier reference`: the pages of the book that are made of the command line and of the codes of errors.

mod command_line;
mod errors;

use anyhow::Context;
use clap::Args;
use std::fs;
use std::path::PathBuf;

/// Options of `farrier reference`.
#[derive(Debug, Args)]
pub(crate) struct Reference {
    /// Folder of the book: the pages go to src/reference below it.
    docs: PathBuf,
}

impl Reference {
    /// Writes the pages about this command line.
    pub(crate) fn write(&self, cli: clap::Command) -> anyhow::Result<()> {
        for (page, text) in pages(cli) {
            let file = self.docs.join(page);
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(())
    }
}

/// The pages, each with its path below the folder of the book.
fn pages(cli: clap::Command) -> [(&'static str, String); 2] {
    [("src/reference/farrier.md", command_line::page(cli)), ("src/reference/errors.md", errors::page())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_committed_pages_say_what_there_is() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        for (page, text) in pages(crate::commands::command_line()) {
            let committed = fs::read_to_string(docs.join(page)).unwrap_or_default();
            assert!(committed == text, "docs/{page} is out of date: run cargo xtask reference");
        }
    }
}
