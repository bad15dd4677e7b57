//! Why a fleet file is refused.

use std::io;
use std::path::PathBuf;

/// A fleet file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{}: {source}; give the path of a fleet file", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is no TOML, or names what nobody knows.
    #[error("{}, line {line}: {reason}; correct that line", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, from 1 on.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A value cannot be.
    #[error("{}: {key} {reason}", file.display())]
    Value {
        /// The file.
        file: PathBuf,
        /// The key, with the tables that it is in.
        key: String,
        /// What is wrong with it, and what to give.
        reason: String,
    },
}

/// The line, from 1 on, that an error of TOML is about, and its reason in one line.
pub(crate) fn line_of(text: &str, error: &toml::de::Error) -> (usize, String) {
    let start = error.span().map_or(0, |span| span.start).min(text.len());
    (text[..start].matches('\n').count() + 1, error.message().replace('\n', " "))
}
