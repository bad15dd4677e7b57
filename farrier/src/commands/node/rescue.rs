//! The password of a rescue. It is never an argument, which every user of the host could read.

use crate::access::secret;
use clap::Args;
use std::path::PathBuf;

/// Options of `farrier node rescue`.
#[derive(Debug, Args)]
pub(crate) struct RescuePassword {
    /// File with the password of the user `rescue`, on one line (-: standard input) [default: the terminal,
    /// otherwise standard input].
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

impl RescuePassword {
    /// The password, from where it is given.
    pub(crate) fn read(self) -> anyhow::Result<String> {
        secret::read(self.password_file.as_deref(), "Password of the user rescue")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_comes_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        let read = || RescuePassword { password_file: Some(file.clone()) }.read();
        assert!(read().unwrap_err().to_string().contains("cannot be read"));
        std::fs::write(&file, "oats\n").unwrap();
        assert_eq!(read().unwrap(), "oats");
    }
}
