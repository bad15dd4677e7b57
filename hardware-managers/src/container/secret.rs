//! Credentials for one registry, in a file that exists while an image is fetched.

use super::error::ContainerError;
use super::permit::Reference;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::io::Write;
use std::path::Path;
use tempfile::NamedTempFile;

/// Credentials for a registry, as a conductor sends them.
#[derive(Clone)]
pub struct PullSecret(String);

/// The credentials in a file that only root can read. Dropping it removes the file.
pub struct SecretFile(NamedTempFile);

impl PullSecret {
    /// Reads base64 of the credentials, themselves base64 of `user:password`.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Secret`], which does not show it.
    pub fn decode(text: &str) -> Result<Self, ContainerError> {
        let bytes = STANDARD.decode(text.trim()).map_err(|_| ContainerError::Secret)?;
        let secret = String::from_utf8(bytes).map_err(|_| ContainerError::Secret)?;
        Ok(Self(secret.trim().to_owned()))
    }

    /// Writes it to a file below `folder`, in the form that runners read.
    ///
    /// # Errors
    ///
    /// [`ContainerError::File`].
    pub(super) fn write(&self, image: &Reference, folder: &Path) -> Result<SecretFile, ContainerError> {
        let failed = |source| ContainerError::File { file: folder.to_owned(), source };
        let content = json!({"auths": {image.registry(): {"auth": self.0}}});
        // Made with mode 0600.
        let mut file = NamedTempFile::new_in(folder).map_err(failed)?;
        write!(file, "{content}").map_err(failed)?;
        Ok(SecretFile(file))
    }
}

impl SecretFile {
    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Removes the file. That it is gone is proven, because foreign code runs next (S09).
    ///
    /// # Errors
    ///
    /// [`ContainerError::File`].
    pub fn destroy(self) -> Result<(), ContainerError> {
        let file = self.path().to_owned();
        self.0.close().map_err(|source| ContainerError::File { file, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn s09_a_secret_is_readable_by_root_alone_and_then_gone() {
        let folder = tempfile::tempdir().unwrap();
        let secret = PullSecret::decode(&STANDARD.encode("dXNlcjpwYXNz\n")).unwrap();
        let image = Reference::parse("oci://registry.example:5000/os/image:1").unwrap();
        let file = secret.write(&image, folder.path()).unwrap();
        let path = file.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let content = fs::read_to_string(&path).unwrap();
        assert_eq!(content, r#"{"auths":{"registry.example:5000":{"auth":"dXNlcjpwYXNz"}}}"#);
        file.destroy().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn s48_a_bad_secret_is_not_shown() {
        for bad in ["hunter2!", "/w=="] {
            let text = PullSecret::decode(bad).err().unwrap().to_string();
            assert!(!text.contains(bad), "{text}");
        }
    }
}
