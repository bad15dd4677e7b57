//! configfs: objects of the kernel that are made by making folders, set by writing to the files that these come with,
//! and joined by symbolic links (`Documentation/filesystems/configfs.rst` of the kernel).
//!
//! What is to be done is said as [`Change`]s, so that it can be looked at before it is done.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A change to configfs. Paths are below where it is mounted.
#[derive(Clone, PartialEq, Eq)]
pub enum Change {
    /// Makes an object. One that is there is fine.
    Make(PathBuf),
    /// Sets an attribute that reads back as it was written.
    Set(PathBuf, String),
    /// Sets an attribute that cannot be read, or reads back differently.
    Tell(PathBuf, String),
    /// Sets an attribute where the kernel and the device are able to.
    Wish(PathBuf, String),
    /// Makes a link that leads to an object. One that is there is fine.
    Link(PathBuf, PathBuf),
    /// Takes a link away.
    Unlink(PathBuf),
    /// Takes an object away, with its attributes.
    Remove(PathBuf),
}

impl Change {
    /// What it changes.
    pub fn path(&self) -> &Path {
        match self {
            Self::Make(path)
            | Self::Set(path, _)
            | Self::Tell(path, _)
            | Self::Wish(path, _)
            | Self::Link(path, _)
            | Self::Unlink(path)
            | Self::Remove(path) => path,
        }
    }

    /// Does it to the configfs mounted at `root`.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn apply(&self, root: &Path) -> io::Result<()> {
        let path = root.join(self.path());
        match self {
            Self::Make(_) => present(fs::create_dir(path)),
            Self::Set(_, text) | Self::Tell(_, text) => fs::write(path, text),
            Self::Wish(_, text) => {
                if let Err(error) = fs::write(&path, text) {
                    tracing::debug!(path = %path.display(), %error, "the kernel does not do that");
                }
                Ok(())
            }
            Self::Link(_, target) => present(symlink(root.join(target), path)),
            Self::Unlink(_) => fs::remove_file(path),
            Self::Remove(_) => fs::remove_dir(path),
        }
    }

    /// Whether the configfs mounted at `root` is as if this had been done, as far as it can be read.
    pub fn is_done(&self, root: &Path) -> bool {
        let path = root.join(self.path());
        match self {
            Self::Make(_) => path.is_dir(),
            Self::Set(_, text) => fs::read_to_string(path).is_ok_and(|found| found.trim_end() == text),
            Self::Tell(..) | Self::Wish(..) => true,
            Self::Link(..) => path.is_symlink(),
            Self::Unlink(_) => !path.is_symlink(),
            Self::Remove(_) => !path.exists(),
        }
    }
}

fn present(made: io::Result<()>) -> io::Result<()> {
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_done_once_it_was_applied_and_can_be_done_again() {
        let root = tempfile::tempdir().unwrap();
        let (folder, file, link) =
            (PathBuf::from("core"), PathBuf::from("core/enable"), PathBuf::from("core/lun"));
        for change in [
            Change::Make(folder.clone()),
            Change::Set(file.clone(), "1".to_owned()),
            Change::Link(link.clone(), folder.clone()),
        ] {
            assert!(!change.is_done(root.path()), "{}", change.path().display());
            change.apply(root.path()).unwrap();
            change.apply(root.path()).unwrap();
            assert!(change.is_done(root.path()), "{}", change.path().display());
        }
        assert!(!Change::Set(file.clone(), "0".to_owned()).is_done(root.path()));
        // Attributes go with their object in the kernel; here the file is in the way.
        assert!(Change::Remove(folder.clone()).apply(root.path()).is_err());
        fs::remove_file(root.path().join(file)).unwrap();
        for change in [Change::Unlink(link), Change::Remove(folder)] {
            assert!(!change.is_done(root.path()), "{}", change.path().display());
            change.apply(root.path()).unwrap();
            assert!(change.is_done(root.path()), "{}", change.path().display());
        }
    }

    #[test]
    fn what_is_only_wished_for_fails_nothing() {
        let root = tempfile::tempdir().unwrap();
        let (file, text) = (PathBuf::from("absent/attrib"), "1".to_owned());
        Change::Wish(file.clone(), text.clone()).apply(root.path()).unwrap();
        assert!(Change::Tell(file, text).apply(root.path()).is_err());
    }
}
