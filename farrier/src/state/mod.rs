//! The folder of a conductor. What lies in it for its own user lets that user's commands find the conductor's
//! certificate and be its operator.

pub(crate) mod database;
pub(crate) mod fingerprint;
pub(crate) mod private_file;
pub(crate) mod token;

use anyhow::Context;
use clap::Args;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// File of the certificate in the folder of one that was made here.
pub(crate) const CERTIFICATE: &str = "certificate.pem";

/// The state directory.
#[derive(Debug, Clone, Args)]
pub(crate) struct StateDir {
    /// State directory of the conductor: database, certificate, operators, consoles and logs.
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "FARRIER_STATE_DIR",
        default_value = "farrier-state"
    )]
    state_dir: PathBuf,
}

impl StateDir {
    /// Makes it, for its owner alone, unless it is there. Gives its absolute path.
    pub(crate) fn make(&self) -> anyhow::Result<PathBuf> {
        let path = std::path::absolute(&self.state_dir)?;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.with_context(|| format!("the state directory {} cannot be created", path.display()))?;
        Ok(path)
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.state_dir
    }

    /// File of the operators.
    pub(crate) fn operators(&self) -> PathBuf {
        self.state_dir.join("operators")
    }

    /// Folder of the certificate that the conductor makes for itself.
    pub(crate) fn tls(&self) -> PathBuf {
        self.state_dir.join("tls")
    }

    /// File of the token; every user who can read it is an administrator.
    pub(crate) fn token(&self) -> PathBuf {
        self.state_dir.join("token")
    }

    /// The token, which is made at the first start.
    pub(crate) fn make_token(&self) -> anyhow::Result<String> {
        let file = self.token();
        private_file::create(&file, format!("{}\n", token::new()).as_bytes())
            .with_context(|| format!("the token {} cannot be written", file.display()))?;
        token::read(&file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    #[test]
    fn a_state_directory_and_its_token_are_for_their_owner() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir { state_dir: folder.path().join("a/b") };
        let path = state.make().unwrap();
        let token = state.make_token().unwrap();
        assert_eq!(state.make_token().unwrap(), token, "it is made once");
        assert_eq!(token.len(), 43);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&state.token())), (0o700, 0o600));
        fs::write(state.token(), "\n").unwrap();
        assert!(state.make_token().unwrap_err().to_string().contains("is empty"));
    }
}
