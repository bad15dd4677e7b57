//! Files that only their owner reads, and that are there whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// A file under way, beside the one that it becomes. It goes when it is dropped.
#[derive(Debug)]
pub(crate) struct NewFile<'a> {
    file: File,
    unfinished: PathBuf,
    becomes: &'a Path,
}

impl<'a> NewFile<'a> {
    /// Begins a file. It gets the owner of the old one, or of its folder: root may write it for a service.
    pub(crate) fn begin(becomes: &'a Path) -> io::Result<Self> {
        let unfinished = beside(becomes);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        let new = Self { file, unfinished, becomes };
        let owner = fs::metadata(becomes).or_else(|_| fs::metadata(folder(becomes)))?;
        if new.file.metadata()?.uid() != owner.uid() {
            fchown(&new.file, Some(owner.uid()), Some(owner.gid()))?;
        }
        Ok(new)
    }

    /// What is written to it.
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Where it is until it is finished.
    pub(crate) fn path(&self) -> &Path {
        &self.unfinished
    }

    /// Finishes the file, and replaces the old one.
    pub(crate) fn replace(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.unfinished, self.becomes)?;
        File::open(folder(self.becomes))?.sync_all()
    }

    /// Finishes the file unless the other one exists; true if it does not.
    pub(crate) fn create(self) -> io::Result<bool> {
        self.file.sync_all()?;
        match fs::hard_link(&self.unfinished, self.becomes) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(error),
        }
        File::open(folder(self.becomes))?.sync_all()?;
        Ok(true)
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        fs::remove_file(&self.unfinished).ok();
    }
}

/// Writes or replaces a file.
pub(crate) fn write(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut new = NewFile::begin(file)?;
    new.file().write_all(content)?;
    new.replace()
}

/// Writes a file unless it exists; true if it was written.
pub(crate) fn create(file: &Path, content: &[u8]) -> io::Result<bool> {
    let mut new = NewFile::begin(file)?;
    new.file().write_all(content)?;
    new.create()
}

/// A unique path in the same folder.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let random = rand::random::<[u8; 8]>();
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", hex::encode(random)));
    path.with_file_name(name)
}

/// The folder of a file.
pub(crate) fn folder(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_replaced_whole_and_created_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        assert!(create(&file, b"one").unwrap());
        assert!(!create(&file, b"two").unwrap());
        assert_eq!(fs::read(&file).unwrap(), b"one");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        write(&file, b"three").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"three");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(write(&folder.path().join("none/secret"), b"").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing unfinished is left");
    }
}
