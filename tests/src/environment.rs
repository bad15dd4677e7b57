//! What `cargo xtask test` tells tests by environment variables.

use std::path::PathBuf;

/// The text of a variable.
///
/// # Panics
///
/// It is not set, so nothing can be tested.
pub fn text(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run cargo xtask test with a tier"))
}

/// The file or folder that a variable names, where it is set: what tests are quicker with and commands do without.
pub fn optional_path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

/// The file or folder that a variable names.
///
/// # Panics
///
/// As [`text`].
pub fn path(name: &str) -> PathBuf {
    text(name).into()
}
