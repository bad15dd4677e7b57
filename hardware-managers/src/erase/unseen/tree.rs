//! A tree of sysfs, for tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// The tree; removed on drop.
pub struct Tree(tempfile::TempDir);

impl Tree {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, path: &str, text: &str) {
        let file = self.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Has a link at `path` lead to the folder at `target`, which is made.
    pub fn link(&self, path: &str, target: &str) {
        let (link, target) = (self.path().join(path), self.path().join(target));
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        fs::create_dir_all(&target).unwrap();
        symlink(target, link).unwrap();
    }

    /// A PCI function; gives its folder.
    pub fn pci(&self, address: &str, class: &str, vendor: &str, device: &str) -> String {
        let folder = format!("devices/pci0000:00/{address}");
        for (file, text) in [("class", class), ("vendor", vendor), ("device", device)] {
            self.write(&format!("{folder}/{file}"), text);
        }
        self.link(&format!("bus/pci/devices/{address}"), &folder);
        folder
    }
}
