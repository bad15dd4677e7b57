//! What is wrong with a configuration file.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// A line of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file.
    pub(crate) file: Arc<PathBuf>,
    /// The line, from 1 on.
    pub(crate) line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// A configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigurationError {
    /// The file or folder is missing or unreadable.
    #[error("{} cannot be read: {source}; correct --config-file or --config-dir, or the permissions", file.display())]
    Unreadable {
        /// The file or folder.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Other users can change what the conductor does.
    #[error("{} is writable by other users; run chmod go-w {}", .0.display(), .0.display())]
    Writable(PathBuf),
    /// Another user owns the file.
    #[error("{} belongs to user {owner}; run chown root {}", file.display(), file.display())]
    Owner {
        /// The file.
        file: PathBuf,
        /// Number of the user.
        owner: u32,
    },
    /// The file is no TOML, or has a key twice.
    #[error("{place}: {reason}")]
    Syntax {
        /// Where.
        place: Place,
        /// The parser's words.
        reason: String,
    },
    /// There is no such option.
    #[error("{place}: unknown key {key}; the nearest key is {nearest}")]
    UnknownKey {
        /// Where.
        place: Place,
        /// The key with its table.
        key: String,
        /// The most similar key.
        nearest: String,
    },
    /// The option does not take the value.
    #[error("{place}: {key}: {reason}")]
    Value {
        /// Where.
        place: Place,
        /// The key.
        key: String,
        /// What is wrong with the value, and what the option takes.
        reason: String,
    },
}
