//! Where the files of machines are: a folder for each, named by the identity of its node, which outlives every name.
//!
//! Folders of earlier versions bear the name of their node. Such a folder is renamed when it is first needed; a machine
//! that runs continues, because its open files move with its folder.

use super::{QemuError, QemuSettings};
use farrier_conductor::model::Node;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is in the folder of every machine that was ever on, and in no other folder.
const MARK: &str = "qemu.log";

/// Where the files of machines are, and what records may name besides.
#[derive(Debug, Clone)]
pub(super) struct Folders {
    state_dir: PathBuf,
    settings: Arc<QemuSettings>,
}

impl Folders {
    /// Folders below this one.
    pub(super) fn below(state_dir: PathBuf, settings: Arc<QemuSettings>) -> Self {
        Self { state_dir, settings }
    }

    /// What records may name.
    pub(super) fn settings(&self) -> &QemuSettings {
        &self.settings
    }

    /// The folder of all folders.
    pub(super) fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    /// The folder of a node's machine.
    pub(super) fn of(&self, node: &Node) -> PathBuf {
        let folder = self.state_dir.join(node.uuid.to_string());
        let named = node.name.as_ref().map(|name| self.state_dir.join(name));
        match named {
            Some(named) if !folder.exists() && named.join(MARK).exists() => {
                match std::fs::rename(&named, &folder) {
                    Ok(()) => folder,
                    // It may be somebody else's: then the old one serves until it can be renamed.
                    Err(error) => {
                        tracing::warn!(folder = %named.display(), "is not renamed to {}: {error}", folder.display());
                        if folder.exists() { folder } else { named }
                    }
                }
            }
            _ => folder,
        }
    }

    /// That folder, which is there then.
    pub(super) fn made_for(&self, node: &Node) -> Result<PathBuf, QemuError> {
        let folder = self.of(node);
        std::fs::create_dir_all(&folder).map_err(QemuError::file(&folder))?;
        Ok(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::node;
    use super::*;
    use serde_json::json;
    use std::fs;

    fn folders() -> (tempfile::TempDir, Folders) {
        let state = tempfile::tempdir().unwrap();
        let folders = Folders::below(state.path().to_owned(), Arc::default());
        (state, folders)
    }

    #[test]
    fn another_name_of_its_node_leaves_a_machine_its_files() {
        let (_state, folders) = folders();
        let mut node = node(&json!({}));
        let folder = folders.made_for(&node).unwrap();
        fs::write(folder.join("console.log"), "login:").unwrap();
        node.name = Some("n2".into());
        assert_eq!(folders.of(&node), folder);
        node.name = None;
        assert_eq!(fs::read_to_string(folders.of(&node).join("console.log")).unwrap(), "login:");
    }

    #[test]
    fn a_folder_that_bears_the_name_is_taken_over_when_it_is_a_machine_s() {
        let (state, folders) = folders();
        let node = node(&json!({}));
        let named = state.path().join("n1");
        fs::create_dir(&named).unwrap();
        assert_ne!(folders.of(&node), named, "it may be anything");
        fs::write(named.join(MARK), "").unwrap();
        fs::write(named.join("vars.fd"), "variables").unwrap();
        let folder = folders.of(&node);
        assert_eq!(folder, state.path().join(node.uuid.to_string()));
        assert_eq!(fs::read_to_string(folder.join("vars.fd")).unwrap(), "variables");
        assert!(!named.exists());

        // One that bears the name later is not its own.
        fs::create_dir(&named).unwrap();
        fs::write(named.join(MARK), "").unwrap();
        assert_eq!(folders.of(&node), folder);
        assert!(named.exists());
    }
}
