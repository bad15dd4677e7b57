//! A sysfs tree in a temporary directory, for tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// The tree; removed on drop.
pub struct FakeSysfs {
    root: tempfile::TempDir,
}

impl FakeSysfs {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("block")).unwrap();
        Self { root }
    }

    /// Adds a disk at `path` below the root, with attributes by relative path.
    pub fn disk(&self, path: &str, size: u64, attributes: &[(&str, &str)]) {
        let directory = self.root.path().join(path);
        fs::create_dir_all(directory.join("queue")).unwrap();
        fs::write(directory.join("size"), format!("{}\n", size / 512)).unwrap();
        fs::write(directory.join("queue/logical_block_size"), "512\n").unwrap();
        for (name, content) in attributes {
            let file = directory.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            // Each character stands for one byte, so that binary attributes can be written as text.
            let bytes: Vec<u8> = content.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
            fs::write(file, bytes).unwrap();
        }
        let name = directory.file_name().unwrap();
        symlink(&directory, self.root.path().join("block").join(name)).unwrap();
    }

    /// Has the device at `upper` lie on the disk or partition at `lower`, both below the root.
    pub fn stack(&self, lower: &str, upper: &str) {
        let (lower, upper) = (self.root.path().join(lower), self.root.path().join(upper));
        for (directory, target) in [(lower.join("holders"), &upper), (upper.join("slaves"), &lower)] {
            fs::create_dir_all(&directory).unwrap();
            symlink(target, directory.join(target.file_name().unwrap())).unwrap();
        }
    }

    pub fn path(&self) -> &Path {
        self.root.path()
    }
}
