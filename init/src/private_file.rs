//! Files of the agent's own that nobody else reads, and that are there as a whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Replaces the content of the file at `path` by `content`, whose folder is made. A process that ends in the middle
/// leaves the file as it was.
///
/// # Errors
///
/// Whatever the kernel reports.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let new = path.with_extension("new");
    // One that a crash left behind may be anybody's.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn x01_a_file_is_replaced_as_a_whole_and_is_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("farrier/command.json");
        // What a process left that ended while it wrote.
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path.with_extension("new"), "half of it").unwrap();
        for content in ["first", "2"] {
            replace(&path, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
