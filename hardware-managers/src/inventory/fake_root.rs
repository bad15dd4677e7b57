//! A root file system in a temporary directory, for tests.

use std::fs;
use std::path::Path;

/// The tree; removed on drop.
pub struct FakeRoot(tempfile::TempDir);

impl FakeRoot {
    /// A tree with these files.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let root = Self(tempfile::tempdir().unwrap());
        for (path, content) in files {
            root.write(path, content);
        }
        root
    }

    /// Writes a file and the directories above it.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let file = self.0.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}
