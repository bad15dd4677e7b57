//! What must outlive a crash of the agent process: its token and its certificate.
//!
//! The conductor hands a token out once per boot and refuses a heartbeat with another certificate
//! (sections 2.4 and 2.5), so a restarted agent takes up both again. The file lies on a memory
//! file system and goes with the boot.

use crate::identity::tls::Identity;
use farrier_init::private_file;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the session lies, below the root directory.
pub const PATH: &str = "run/farrier/session.json";

/// The session of one boot.
#[derive(Default, Serialize, Deserialize)]
pub struct Session {
    /// Token shared with the conductor.
    pub token: Option<String>,
    /// The agent's own certificate.
    pub identity: Option<Identity>,
    #[serde(skip)]
    path: PathBuf,
}

impl Session {
    /// Takes up the stored session, or begins one when there is none that can be read.
    pub fn open(path: &Path) -> Self {
        let stored = match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::from),
            // A fresh boot.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        };
        let tell = |error: &io::Error| {
            tracing::error!(
                path = %path.display(), %error,
                "the session cannot be read: the conductor may refuse this agent until the machine boots again"
            );
        };
        Self { path: path.to_owned(), ..stored.inspect_err(tell).unwrap_or_default() }
    }

    /// Stores the session. Failing costs no more than the chance to take it up again.
    pub fn store(&self) {
        let content = serde_json::to_vec(self).map_err(Into::into);
        if let Err(error) = content.and_then(|content| private_file::replace(&self.path, &content)) {
            tracing::warn!(path = %self.path.display(), %error, "the session cannot be stored");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_session_is_taken_up_again_and_is_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("farrier/session.json");
        let mut session = Session::open(&path);
        session.token = Some("t".repeat(43));
        session.store();
        assert_eq!(Session::open(&path).token, session.token);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn g10_a_damaged_session_begins_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("session.json");
        for text in ["", "{", "null", "[]", r#"{"token": 5}"#, r#"{"token": "t", "identity": "#] {
            fs::write(&path, text).unwrap();
            assert!(Session::open(&path).token.is_none(), "{text}");
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(Session::open(&path).token.is_none());
    }
}
