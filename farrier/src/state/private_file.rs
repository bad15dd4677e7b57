//! Files that only their owner reads, and that are there whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// Writes or replaces a file. It gets the owner of the old one, or of its folder: root may
/// write it for a service.
pub(crate) fn write(file: &Path, content: &[u8]) -> io::Result<()> {
    put(file, content, |unfinished| fs::rename(unfinished, file))
}

/// Writes a file unless it exists; true if it was written.
pub(crate) fn create(file: &Path, content: &[u8]) -> io::Result<bool> {
    let linked = put(file, content, |unfinished| {
        fs::hard_link(unfinished, file)?;
        fs::remove_file(unfinished)
    });
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// A unique path in the same folder.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let random = rand::random::<[u8; 8]>();
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", hex::encode(random)));
    path.with_file_name(name)
}

fn put(file: &Path, content: &[u8], place: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let unfinished = beside(file);
    let placed = write_new(&unfinished, content, file).and_then(|()| place(&unfinished));
    if placed.is_err() {
        fs::remove_file(&unfinished).ok();
    }
    placed?;
    File::open(folder(file))?.sync_all()
}

fn write_new(unfinished: &Path, content: &[u8], file: &Path) -> io::Result<()> {
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(unfinished)?;
    let owner = fs::metadata(file).or_else(|_| fs::metadata(folder(file)))?;
    if new.metadata()?.uid() != owner.uid() {
        fchown(&new, Some(owner.uid()), Some(owner.gid()))?;
    }
    new.write_all(content)?;
    new.sync_all()
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
